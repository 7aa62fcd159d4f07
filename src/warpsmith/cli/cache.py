"""``warpsmith cache``."""

from __future__ import annotations

from collections.abc import Sequence

from ..toolchains.cache import default_cache
from .output import dump_json, size
from .parsing import Parser

EXAMPLES = """
  $ws cache
  $ws cache --clear
"""
MORE = """
Compiled kernels and programs are kept in warpsmith/ in the user's cache folder ($XDG_CACHE_HOME or ~/.cache),
or in $WARPSMITH_CACHE.  What was not used for longest goes when it grows over 2 GiB ($WARPSMITH_CACHE_LIMIT,
in bytes)."""


def main(arguments: Sequence[str]) -> int:
    parser = Parser("cache", examples=EXAMPLES, more=MORE)
    parser.add_argument("--clear", action="store_true", help="remove everything")
    parser.json()
    options = parser.parse_args(arguments)
    cache = default_cache()
    usage = cache.clear() if options.clear else cache.usage()
    if options.json:
        print(dump_json({"folder": str(cache.root), "limit": cache.limit, "cleared": options.clear, **usage._asdict()}))
    elif options.clear:
        print(f"{cache.root}: removed {usage.entries} entries, {size(usage.bytes)}")
    else:
        print(f"{cache.root}: {usage.entries} entries, {size(usage.bytes)} of at most {size(cache.limit)}")
    return 0
