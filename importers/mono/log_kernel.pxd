from libc.string cimport memcpy
