"""``python -m neoranging`` is the command ``neoranging``."""

from neoranging.cli import main

if __name__ == "__main__":
    main(prog_name="neoranging")
