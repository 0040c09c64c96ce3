"""A web server that webhooks are sent to."""

import http.server
import threading


class Hook:
    """A server that keeps what it is sent, and answers as it is told."""

    def __init__(self):
        self.calls, self.answers = [], []
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.calls.append((dict(self.headers), body))
                self.send_response(hook.answers.pop(0) if hook.answers else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
