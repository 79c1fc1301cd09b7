"""Names of the Itanium mangling that become long, or are nested deeply."""


def doubling(n: int) -> str:
    """A, B<A, A>, B<B<A, A>, B<A, A>> and so on, as parameters."""
    name = "_Z1f1A1BIS_S_E"
    for nth in range(n - 1):
        name += "S0_I" + 2 * f"S{_BASE36[nth + 1]}_" + "E"
    return name


_BASE36 = [a + b for a in ("", "1", "2") for b in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
NESTED = {
    "pointers": lambda n: f"_Z1f{'P' * n}i",
    "local names": lambda n: f"_Z{'Z' * n}1fv",
    "negations": lambda n: f"_Z1fIX{'ng' * n}Li1EEEvv",
    "arguments": lambda n: "_Z1f" + "1aI" * n,
    "arrays": lambda n: f"_Z1f{'A_' * n}i",
}
