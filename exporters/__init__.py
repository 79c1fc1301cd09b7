"""One module for each output format; `converter.registry` lists them."""
