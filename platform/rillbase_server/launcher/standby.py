"""A second process of a service that has loaded its program and waits, so that a restart takes less
than a second.

It differs from the service's process by one variable and by its input: it takes over when it reads
a line, and exits at the end of the input.
"""

import os
import subprocess
from collections.abc import Callable

from .child import end_family

VARIABLE = "RILLBASE_STANDBY"
START = b"start\n"


class StandbyProcess:
    """The process, and the end of a pipe from which its output is read."""

    def __init__(self, popen: Callable[[int, int], subprocess.Popen[bytes]]) -> None:
        """Start it. `popen` takes descriptors of its input and its output."""
        input_end, self._input = os.pipe()
        self.output, output_end = os.pipe()
        try:
            self.process = popen(input_end, output_end)
        except OSError:
            os.close(self._input)
            os.close(self.output)
            raise
        finally:
            os.close(input_end)
            os.close(output_end)

    def take_over(self) -> bool:
        """Make it the service's process. False: it has exited, and was removed."""
        if self.process.poll() is None:
            try:
                os.write(self._input, START)
            except OSError:
                pass
            else:
                os.close(self._input)
                return True
        self.end()
        return False

    def end(self) -> None:
        """Kill and remove it."""
        self.process.kill()
        self.process.wait()
        end_family(self.process.pid)
        os.close(self._input)
        os.close(self.output)
