"""One module or package for each input format; `converter.registry` lists them."""
