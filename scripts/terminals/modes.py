"""Reads the state of the terminal that this runs in; for `run`.

modes.py read FILE             writes the state to FILE
modes.py compare BEFORE AFTER  prints the differences
modes.py missing FILE          prints what the terminal does not report
modes.py record FILE           writes what the terminal sends to FILE, up to a "q"
"""

import json
import os
import re
import select
import subprocess
import sys
import termios
import tty
from pathlib import Path

FLAGS = [(0, "ICRNL"), (1, "OPOST"), (3, "ECHO"), (3, "ICANON"), (3, "ISIG")]
MODES = "25 66 1000 1002 1003 1004 1006 1015 1036 1049 2004 2026 2031".split()
VALUES = {"1": "set", "2": "reset", "3": "always set", "4": "always reset"}
# st takes these for "restore the cursor" and "underline": the cursor is saved before, and the style reset after.
KEYBOARD, OTHER_KEYS = "\x1b7\x1b[?u", "\x1b[?4m\x1b[m"
# GNU screen reports nothing itself, and passes questions to the terminal that it runs in.
IS_SCREEN = "STY" in os.environ
TMUX = "alternate_on cursor_flag keypad_flag mouse_any_flag mouse_button_flag mouse_standard_flag mouse_sgr_flag"


def ask(terminal: int, questions: str) -> str:
    """Returns the answers. Every terminal answers the last question (DA1), and answers in order."""
    questions += "\x1b[c"
    os.write(terminal, (f"\x1bP{questions}\x1b\\" if IS_SCREEN else questions).encode())
    answers = ""
    while not re.search(r"\x1b\[\?[\d;]*c", answers) and select.select([terminal], [], [], 10)[0]:
        answers += os.read(terminal, 4096).decode("latin-1")
    return answers


def read() -> dict[str, str | None]:
    terminal = os.open("/dev/tty", os.O_RDWR)
    former = termios.tcgetattr(terminal)
    tty.setraw(terminal)
    main = ask(terminal, "".join(f"\x1b[?{mode}$p" for mode in MODES) + KEYBOARD + OTHER_KEYS)
    alternate = ""
    if not IS_SCREEN:
        # The other screen has keyboard flags of its own.
        alternate = ask(terminal, f"\x1b[?1049h{KEYBOARD}")
        os.write(terminal, b"\x1b[?1049l")
    termios.tcsetattr(terminal, termios.TCSANOW, former)

    def answer(form: str, text: str) -> str | None:
        found = re.search(form, text)
        return found[1] if found else None

    state = {f"tty flag {name}": "on" if former[field] & getattr(termios, name) else "off" for field, name in FLAGS}
    state |= {f"mode {mode}": VALUES.get(answer(rf"\x1b\[\?{mode};(\d)\$y", main)) for mode in MODES}
    state["kitty flags"] = answer(r"\x1b\[\?(\d+)u", main)
    state["kitty flags of the alternate screen"] = answer(r"\x1b\[\?(\d+)u", alternate)
    state["modifyOtherKeys"] = answer(r"\x1b\[>4;(\d+)m", main)
    if "TMUX" in os.environ:
        form = ",".join(f"#{{{flag}}}" for flag in TMUX.split())
        show = ["tmux", "display-message", "-p", "-t", os.environ["TMUX_PANE"], form]
        values = subprocess.run(show, capture_output=True, text=True).stdout.strip().split(",")
        state |= {f"tmux's {flag}": value for flag, value in zip(TMUX.split(), values)}
    return state


def record(path: str) -> None:
    terminal = os.open("/dev/tty", os.O_RDWR)
    former = termios.tcgetattr(terminal)
    tty.setraw(terminal)
    file, sent = Path(path), b""
    file.touch()
    while not sent.endswith(b"q") and select.select([terminal], [], [], 10)[0]:
        sent += os.read(terminal, 4096)
    termios.tcsetattr(terminal, termios.TCSANOW, former)
    file.write_text(ascii(sent.decode("latin-1")))


match sys.argv[1:]:
    case ["read", path]:
        Path(path).write_text(json.dumps(read()))
    case ["compare", before, after]:
        was, now = (json.loads(Path(path).read_text()) for path in (before, after))
        print("; ".join(f"{name} is {now[name]}, was {was[name]}" for name in was if now[name] != was[name]))
    case ["missing", path]:
        state = json.loads(Path(path).read_text())
        print(", ".join(name for name, value in state.items() if value is None).replace(", mode ", " "))
    case ["record", path]:
        record(path)
    case _:
        sys.exit(__doc__)
