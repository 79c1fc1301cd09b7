"""One module for each output format; `traceferry.registry` lists them."""
