"""Three readers share one stream in one process, two of which come and go at random; the process is killed at random and
started again, many rounds. In the end every record of every item was handled, in order, none skipped. A record may come
again after a kill, from the last checkpoint on. TABELLA_CRASH_ROUNDS sets how many rounds."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ["STREAM_CONSUMERS"]
ROUNDS = int(os.environ.get("TABELLA_CRASH_ROUNDS", "8"))


class ConsumersTest(unittest.TestCase):
    def test_no_record_is_skipped_over_kills(self):
        folder = tempfile.mkdtemp(prefix="tabella-consumers-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        data, log = os.path.join(folder, "data"), os.path.join(folder, "log")
        for _ in range(ROUNDS):
            process = subprocess.Popen([PROGRAM, "run", data, log], stdout=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(), "running\n")
            time.sleep(random.uniform(0.1, 0.8))
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        final = subprocess.run([PROGRAM, "drain", data, log], stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout
        versions = {item: int(version) for item, version in (line.split() for line in final.splitlines())}

        handled, repeated, total = {}, 0, 0
        with open(log) as lines:
            for line in lines:
                item, version = line.split()
                last = handled.get(item, 0)
                self.assertLessEqual(int(version), last + 1, f"item {item} went from {last} to {version}: a record was skipped")
                total += 1
                repeated += int(version) <= last
                handled[item] = max(last, int(version))
        self.assertEqual(handled, versions)
        print(f"{ROUNDS} kills, {sum(versions.values())} records, {repeated} of {total} handled again", file=sys.stderr)
        self.assertGreater(sum(versions.values()), 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
