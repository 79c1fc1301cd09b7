"""One module or package for each input format; `traceferry.registry` lists them."""
