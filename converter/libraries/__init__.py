"""Names of the addresses of libraries, for every importer whose input names libraries.

    libraries = Libraries(trace, context, source)          # search.py: where FORMATS.md, "Where names are found", says
    library = libraries.library(Recorded(path, build_id))  # once for each; recorded_files.py: what else can be told
    found = library.names(addresses, libraries.demangle)   # library.py: relative to the lowest address that is loaded
    libraries.enter(len(libraries.libraries))              # library.row: of the trace's libs
    libraries.note_problems()                              # at the end: what was used, what is missing

`names` gives (frames, start of the function) for each address: frames are (name, source, line), the outermost first;
none where nothing is found. The address of a caller is that of the call, or of the byte before the return address.
`trace.library_readers` may get `LibraryFiles({library.row: library.file})` of `symbolication.libraries`: exporters and
`view` then ask for machine code and further names.
"""
