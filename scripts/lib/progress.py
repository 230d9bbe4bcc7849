"""Progress of a download: a bar on a terminal, else one line every ten percent. On stderr."""
import sys
import time


class Progress:
    def __init__(self, label, stream=sys.stderr):
        self.label = label
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.started = time.monotonic()
        self.shown_at = 0.0
        self.next_percent = 0
        self.first_bytes = None

    def update(self, done_bytes, total_bytes):
        """total_bytes may be 0 when the server does not say."""
        now = time.monotonic()
        if self.first_bytes is None:
            self.first_bytes = done_bytes  # a resumed download's rate counts only what came now
        if self.is_terminal:
            if now - self.shown_at > 0.1 or done_bytes == total_bytes:
                self.shown_at = now
                self.stream.write("\r\x1b[K" + self._line(done_bytes, total_bytes, now))
                self.stream.flush()
        elif total_bytes and done_bytes * 100 >= self.next_percent * total_bytes:
            self.stream.write(f"{self.label}: {done_bytes * 100 // total_bytes}% of {total_bytes / 1e6:.1f} MB\n")
            self.stream.flush()
            self.next_percent = done_bytes * 100 // total_bytes // 10 * 10 + 10

    def finish(self):
        if self.is_terminal:
            self.stream.write("\n")
            self.stream.flush()

    def _line(self, done, total, now):
        rate = (done - self.first_bytes) / max(now - self.started, 1e-3)
        if not total:
            return f"{self.label}  {done / 1e6:.1f} MB  {rate / 1e6:.1f} MB/s"
        filled = 30 * done // total
        return (f"{self.label}  [{'#' * filled}{'.' * (30 - filled)}] {done / 1e6:.1f} of {total / 1e6:.1f} MB"
                f"  {rate / 1e6:.1f} MB/s")
