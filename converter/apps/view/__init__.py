"""A recording on the screen: converted files, symbols, sources and disassembly, served to a viewer in the browser."""
