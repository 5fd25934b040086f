#!/usr/bin/env python3
"""Counts the functions of parlor that ran a number of times, by module.

Usage: scripts/calls.py FILE LEAST MOST [--list]

FILE is a dump of callgrind for a debug build, in which nothing is inlined:

    valgrind --tool=callgrind --instr-atstart=no target/debug/parlor FOLDER --agent-command COMMAND
    callgrind_control --instr=on PID    # once the session is open
    callgrind_control --zero PID
    ... send a prompt that is answered with 40 chunks, or press 40 keys, one each second ...
    callgrind_control --dump PID

Functions that ran for each chunk are those with about 40 calls. Closures, destructors and derived traits do not count.
"""

import collections
import re
import sys

OTHER = re.compile(r"\{closure|drop_in_place| as core::|serde_core::|'\d+$")


def calls(path):
    names, counts, called = {}, collections.Counter(), None
    for line in open(path, encoding="utf-8"):
        key, _, value = line.strip().partition("=")
        if key in ("fn", "cfn"):
            number, _, name = value.partition(" ")
            if name:
                names[number] = name
            called = number if key == "cfn" else called
        elif key == "calls":
            counts[called] += int(value.split()[0])
    return {names[number]: count for number, count in counts.items() if number in names}


def main(path, least, most, *options):
    wanted = range(int(least), int(most) + 1)
    ran = [name for name, count in calls(path).items() if count in wanted and not OTHER.search(name)]
    modules = collections.defaultdict(list)
    for name in ran:
        if module := re.match(r"<?parlor::(\w+)", name):
            modules[module[1]].append(name)
    for module, functions in sorted(modules.items(), key=lambda entry: -len(entry[1])):
        print(f"{len(functions):4} {module}")
        if "--list" in options:
            print("\n".join(f"       {name}" for name in sorted(functions)))


if __name__ == "__main__":
    main(*sys.argv[1:])
