"""What a domain's own program is told of its searches: `events_url`."""

import base64
import hashlib
import hmac
import json
import threading
import time
import unittest

from manhunt_server import Domain, ManhuntServer, wait_until
from hook import Hook


class Told(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ManhuntServer("--outbound-allow", "127.0.0.1"))

    def setUp(self):
        self.hook = self.enterContext(Hook())
        self.domain = Domain(self.server, self._testMethodName.replace("_", "-")[:60])
        self.domain.call("PUT", "", {"title": "Shop", "events_url": self.hook.url})
        self.ann = self.domain.contact("Ann", ("phone", "+390611111111"))

    def events(self, search):
        """The types of those of a search, in the order in which they came."""
        bodies = [json.loads(body) for _, body in self.hook.calls]
        return [body["type"] for body in bodies if body["data"]["id"] == search["id"]]

    def test_each_search_is_told_of_when_it_is_opened_and_when_it_has_ended(self):
        found = self.domain.search(self.ann, metadata={"summary": "Disk full"})
        canceled = self.domain.search(self.ann)
        wait_until(lambda: self.events(found) and self.events(canceled))
        self.domain.press(self.domain.ring(found)[0], "1")
        self.domain.call("POST", f"/searches/{canceled['id']}/cancel", {})
        failed = self.domain.search(self.domain.contact("Nobody"), wait="100ms")
        wait_until(lambda: all(len(self.events(search)) == 2 for search in (found, canceled, failed)))
        self.assertEqual(self.events(found), ["search.opened", "search.successful"])
        self.assertEqual(self.events(canceled), ["search.opened", "search.canceled"])
        self.assertEqual(set(self.events(failed)), {"search.opened", "search.failed"})
        last = next(json.loads(body) for _, body in self.hook.calls if b"search.successful" in body)
        self.assertEqual(last["data"], {name: value for name, value in self.domain.find(found).items() if name not in ("steps", "attempts")})
        self.assertEqual((last["data"]["resolution"]["how"], last["data"]["metadata"]), ("simulator", {"summary": "Disk full"}))

    def test_it_is_signed_by_the_domains_webhook_secret(self):
        secret = self.domain.call("POST", "/secret")["webhook_secret"]
        search = self.domain.search(self.ann)
        wait_until(lambda: self.hook.calls)
        headers, body = self.hook.calls[0]
        self.assertEqual(headers["webhook-id"], f"{search['id']}-opened")
        text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        self.assertIn("v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode(), headers["webhook-signature"].split())

    def test_it_is_told_again_until_it_is_taken(self):
        self.hook.answers += [500, 503]
        self.domain.search(self.ann)
        wait_until(lambda: len(self.hook.calls) == 3, 60)
        self.assertEqual(len({(headers["webhook-id"], body.split(b'"data"')[1]) for headers, body in self.hook.calls}), 1)
        self.hook.answers.append(410)  # "gone": not again
        self.domain.search(self.ann)
        wait_until(lambda: len(self.hook.calls) == 4)
        time.sleep(3)
        self.assertEqual(len(self.hook.calls), 4)

    def test_what_was_canceled_by_maintenance_is_told_of_once(self):
        self.domain.call("PUT", "/maintenance/move", {"from": "2026-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"})
        search = self.domain.search(self.ann)
        wait_until(lambda: self.events(search))
        time.sleep(0.3)
        self.assertEqual(self.events(search), ["search.canceled"])

    def test_one_that_does_not_answer_keeps_no_phone_from_ringing(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        stuck = self.hook.server.RequestHandlerClass.do_POST
        self.hook.server.RequestHandlerClass.do_POST = lambda handler: (gate.wait(60), stuck(handler))
        searches = [self.domain.search(self.ann) for _ in range(40)]
        wait_until(lambda: {search["id"] for search in searches} <= {phone["search"] for phone in self.domain.phones()})
        other = Domain(self.server, "other")
        other.ring(other.search(other.contact("Bob", ("phone", "+390622222222"))), seconds=5)
        gate.set()
        wait_until(lambda: all(self.events(search) for search in searches), 60)

    def test_where_it_is_told(self):
        for url in ("ftp://example.com/", "http://169.254.169.254/", "example.com", "http://10.0.0.1/"):
            self.assertIn("events_url", self.domain.call("PUT", "", {"events_url": url}, 400)["error"])
        self.assertEqual(self.domain.call("PUT", "", {"title": "Store"})["events_url"], self.hook.url)
        self.assertEqual(self.domain.call("PUT", "", {"events_url": ""})["events_url"], "")
        search = self.domain.search(self.ann)
        self.domain.ring(search)
        self.domain.call("POST", f"/searches/{search['id']}/cancel", {})
        time.sleep(0.5)
        self.assertEqual(self.events(search), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
