"""Sample profile of LLVM, text: what clang -fprofile-sample-use= and llvm-profdata read (AutoFDO)."""

from traceferry.exporters.autofdo.profile import write

__all__ = ["write"]
