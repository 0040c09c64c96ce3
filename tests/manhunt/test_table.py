"""Searches that other programs write into the table, as docs/manhunt.md has them; and rows that are wrong."""

import base64
import hashlib
import hmac
import json
import time
import unittest

from manhunt_server import Domain, ManhuntServer, wait_until


class WrittenByOthers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ManhuntServer())
        cls.domain = Domain(cls.server)
        cls.ann = cls.domain.contact("Ann", ("phone", "+390611111111"), ("text", "+390622222222"))

    def write(self, identifier, **attributes):
        row = {"PK": identifier, "SK": "search", "entityType": "search", "domain": "shop", "contact": self.ann["id"], "status": "active", "created": int(time.time() * 1000),
               "nonce": "0123456789abcdef", **attributes}
        item = {name: {"N": str(value)} if isinstance(value, int) else {"S": value} for name, value in row.items() if value is not None}
        self.server.tables().put_item(TableName="tabella-manhunt", Item=item)
        return {"id": identifier}

    def test_a_row_is_a_search(self):
        search = self.write("s00000000000000000001", metadata='{"summary": "Disk full"}')
        self.assertIn("Disk full", self.domain.ring(search, 2)[0]["text"])
        self.domain.press(self.domain.ring(search, 2)[0], "1")
        self.assertEqual(self.domain.find(search)["status"], "successful")
        for place in ("", f"/contacts/{self.ann['id']}"):
            wait_until(lambda: search["id"] in [one["id"] for one in self.domain.call("GET", f"{place}/searches?status=successful")["searches"]])
            self.assertNotIn(search["id"], [one["id"] for one in self.domain.call("GET", f"{place}/searches?status=active")["searches"]])

    def test_nobody_is_searched_for_during_maintenance(self):
        domain = Domain(self.server, "moving")
        domain.call("PUT", "/maintenance/move", {"from": "2026-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"})
        bob = domain.contact("Bob", ("phone", "+390633333333"))
        found = domain.until(self.write("s00000000000000000060", domain="moving", contact=bob["id"]), "canceled")
        self.assertEqual((found["resolution"]["how"], found["resolution"]["detail"], found["attempts"]), ("maintenance", "move", []))

    def test_its_steps_are_its_own(self):
        bob = self.domain.contact("Bob", ("phone", "+390633333333"))
        steps = [{"wait": "200ms", "targets": [{"contact": bob["id"]}]}, {"wait": "1h", "targets": [{"contact": self.ann["id"]}]}]
        search = self.write("s00000000000000000002", contact=None, steps=json.dumps(steps))
        self.assertEqual([phone["contact_name"] for phone in self.domain.ring(search, 3)], ["Bob", "Ann", "Ann"])

    def test_one_that_says_nothing_has_failed(self):
        for number, wrong in enumerate(({"contact": None}, {"steps": "[]", "contact": ""})):
            found = self.domain.until(self.write(f"s0000000000000000001{number}", **wrong), "failed")
            self.assertIn("neither whom to ask", found["resolution"]["detail"])

    def test_what_is_wrong_in_it_is_left_out(self):
        for number, wrong in enumerate(({"metadata": '{"summary": '}, {"metadata": "[1]"}, {"steps": "{"}, {"created": 10**18}, {"created": -(10**18)}, {"repeat": 10**9}, {"created": None})):
            with self.subTest(wrong):
                search = self.write(f"s0000000000000000002{number}", **wrong)
                if wrong.get("created") != 10**18:  # in two centuries
                    self.domain.ring(search, 2)
                self.assertEqual(self.domain.find(search)["status"], "active")

    def test_one_without_a_nonce_is_given_one(self):
        search = self.write("s00000000000000000030", nonce=None)
        self.domain.ring(search, 2)
        text = self.domain.find(search)["attempts"][1]["text"]
        self.assertEqual(self.server.request("GET", text[text.index("/manhunt/r/"):].split()[0])[0].status, 200)
        expires = int(time.time()) + 600
        signature = hmac.new(b"", f"link|{search['id']}|a01.01.01.02|{expires}".encode(), hashlib.sha256).digest()[:18]
        path = f"/manhunt/r/{search['id']}~a01.01.01.02~{expires:x}~{base64.urlsafe_b64encode(signature).decode()}"
        self.assertEqual(self.server.request("GET", path)[0].status, 404, "anybody could sign it")

    def test_one_that_cannot_be_begun_does_not_stop_the_others(self):
        for identifier, wrong in (("s" * 2040, {}), ("s|x", {}), ("s00000000000000000042", {"domain": "#"}), ("s00000000000000000043", {"domain": "x" * 3000}),
                                  ("s00000000000000000044", {"contact": "c" * 3000}), ("s00000000000000000045", {"contact": "c0", "steps": '[{"wait": "1ms", "targets": [{"contact": "c0"}]}]'}), ("s00000000000000000046", {"policy": "p" * 3000})):
            self.write(identifier, **wrong)
        search = self.write("s00000000000000000041")
        self.domain.ring(search, 2)
        self.domain.until({"id": "s00000000000000000045"}, "failed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
