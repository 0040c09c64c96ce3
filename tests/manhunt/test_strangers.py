"""Every route of manhunt as every stranger: whoever shows nothing, something wrong, or what is good for another domain sees and changes nothing."""

import json
import re
import subprocess
import unittest

from manhunt_server import BINARY, Domain, ManhuntServer, wait_until


class Strangers(unittest.TestCase):
    """A house that is closed. The domain `shop` has one of everything; `rival` has its own key."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ManhuntServer())
        cls.admin = cls.token("manhunt:read", "manhunt:write")
        cls.reader = cls.token("manhunt:read")
        cls.other = cls.token("mail:read")
        wait_until(lambda: cls.server.request("GET", "/manhunt/shop")[0].status == 401)
        cls.shop, cls.rival = (Domain(cls.server, name, cls.admin) for name in ("shop", "rival"))
        cls.ann = cls.shop.contact("Ann", ("phone", "+390611111111"))
        cls.eve = cls.rival.contact("Eve", ("phone", "+390622222222"))
        cls.routing_key = cls.shop.policy("oncall", ("1h", {"contact": cls.ann["id"]}))["routing_key"]
        cls.shop.call("PUT", "/schedules/primary", {"rotations": [{"contacts": [cls.ann["id"]], "start": "2026-01-05T09:00:00", "unit": "week"}]})
        cls.override = cls.shop.call("POST", "/schedules/primary/overrides", {"contact": cls.ann["id"], "from": "2026-12-24T09:00:00Z", "to": "2026-12-27T09:00:00Z"}, 201)["id"]
        cls.shop.call("PUT", "/maintenance/move", {"from": "2030-01-01T00:00:00Z", "to": "2030-01-02T00:00:00Z"})
        cls.shop.call("PUT", "/heartbeats/backup", {"every": "30d", "policy": "oncall"})
        cls.shop.call("PUT", "/templates/text/en", {"text": "{{summary}} {{link}}"})
        cls.search = cls.shop.search(cls.ann)
        wait_until(lambda: cls.shop.find(cls.search)["attempts"])
        cls.key = {"X-Manhunt-Key": cls.shop.call("POST", "/secret")["secret"]}
        cls.rival_key = {"X-Manhunt-Key": cls.rival.call("POST", "/secret")["secret"]}

    @classmethod
    def token(cls, *scopes):
        words = [word for scope in scopes for word in ("--scope", scope)]
        made = subprocess.run([BINARY, "token", "create", "--name", "x", *words, "--store", cls.server.dynamodb], capture_output=True, text=True)
        return {"Authorization": "Bearer " + made.stdout.strip()}

    def domain_routes(self):
        """What is behind /manhunt/DOMAIN, with what is there in `shop`."""
        contact = f"/contacts/{self.ann['id']}"
        method = f"{contact}/methods/{self.ann['methods'][0]['id']}"
        search = f"/searches/{self.search['id']}"
        yield "GET", "", None
        yield "PUT", "", {"title": "mine"}
        yield "POST", "/secret", None
        yield "GET", "/templates", None
        yield "PUT", "/templates/text/en", {"text": "mine"}
        yield "DELETE", "/templates/text/en", None
        yield "GET", "/policies", None
        yield "GET", "/policies/oncall", None
        yield "GET", "/policies/oncall/searches", None
        yield "PUT", "/policies/oncall", {"steps": [{"wait": "1m", "targets": [{"contact": self.eve["id"]}]}]}
        yield "POST", "/policies/oncall/routing-key", None
        yield "DELETE", "/policies/oncall", None
        yield "GET", "/maintenance", None
        yield "GET", "/maintenance/move", None
        yield "PUT", "/maintenance/move", {"from": "2026-01-01T00:00:00Z", "to": "2030-01-02T00:00:00Z"}
        yield "DELETE", "/maintenance/move", None
        yield "GET", "/heartbeats", None
        yield "GET", "/heartbeats/backup", None
        yield "PUT", "/heartbeats/backup", {"every": "1s", "contact": self.eve["id"]}
        yield "DELETE", "/heartbeats/backup", None
        yield "POST", "/heartbeats/backup/beat", None
        yield "GET", "/schedules", None
        yield "GET", "/schedules/primary", None
        yield "PUT", "/schedules/primary", {"rotations": []}
        yield "DELETE", "/schedules/primary", None
        yield "GET", "/schedules/primary/on-call", None
        yield "GET", "/schedules/primary/shifts", None
        yield "POST", "/schedules/primary/overrides", {"contact": self.eve["id"], "from": "2026-12-24T09:00:00Z", "to": "2026-12-27T09:00:00Z"}
        yield "DELETE", f"/schedules/primary/overrides/{self.override}", None
        yield "POST", "/schedules/primary/calendar", None
        yield "GET", "/contacts", None
        yield "POST", "/contacts", {"name": "Mallory"}
        yield "GET", contact, None
        yield "PUT", contact, {"name": "Mallory"}
        yield "DELETE", contact, None
        yield "GET", contact + "/searches", None
        yield "POST", contact + "/methods", {"type": "phone", "destination": "+390633333333"}
        yield "PUT", method, {"destination": "+390633333333"}
        yield "DELETE", method, None
        yield "POST", method + "/verification", None
        yield "POST", method + "/verification/confirm", {"code": "123456"}
        yield "POST", method + "/test", None
        yield "GET", "/searches", None
        yield "POST", "/searches", {"contact": self.ann["id"]}
        yield "GET", search, None
        yield "POST", search + "/respond", {"answer": "accept"}
        yield "POST", search + "/cancel", None
        yield "POST", search + "/resolve", None
        yield "GET", search + "/timeline", None
        yield "POST", "/dry-run", {"contact": self.ann["id"]}

    def house_routes(self):
        """For those who may see all domains."""
        yield "GET", "/manhunt/simulator", None
        yield "POST", f"/manhunt/simulator/{self.search['id']}/a01.01.01.01", {"press": "1"}
        yield "POST", "/manhunt/schedules/preview", {"rotations": [], "from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}

    def doors(self):
        """What brings its own proof, with none that is good; and what is answered."""
        event = {"routing_key": "0" * 32, "event_action": "resolve", "dedup_key": "x"}
        token = f"{self.search['id']}~a01.01.01.01~ffffffff~AAAAAAAAAAAAAAAAAAAAAAAA"
        yield "POST", "/v2/enqueue", event, 400
        yield "POST", "/v2/change/enqueue", event, 400
        for method in ("POST", "PUT"):
            yield method, "/manhunt/alertmanager/" + "0" * 32, {"status": "firing"}, 404
        for what in ("call", "status", "text"):
            yield "POST", f"/manhunt/callbacks/twilio/{what}", None, 404  # no such provider here; test_twilio.py has one
        yield "GET", f"/manhunt/r/{token}", None, 404
        yield "POST", f"/manhunt/r/{token}", None, 404
        yield "GET", "/manhunt/calendar/shop~primary~AAAA", None, 404

    def ask(self, method, path, body, headers):
        return self.server.request(method, path, json.dumps(body) if body is not None else None, headers)

    def all_of_shop(self):
        """Everything that there is of it, but when a heartbeat came."""
        rows = self.server.tables().scan(TableName="tabella-manhunt", ConsistentRead=True)["Items"]
        return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)

    def test_all_routes_are_among_those_that_are_walked(self):
        walked = {(method, "/manhunt/shop" + path) for method, path, _ in self.domain_routes()}
        walked |= {(method, path) for method, path, *_ in [*self.house_routes(), *self.doors()]}
        names = {"{domain}": "shop", "{contact}": self.ann["id"], "{method}": self.ann["methods"][0]["id"], "{search}": self.search["id"], "{attempt}": "a01.01.01.01", "{policy}": "oncall",
                 "{window}": "move", "{heartbeat}": "backup", "{schedule}": "primary", "{override}": self.override, "{channel}": "text", "{language}": "en", "{routing_key}": "0" * 32,
                 "{provider}": "twilio"}
        tokens = {"/manhunt/r/{token}": next(path for _, path, *_ in self.doors() if "/r/" in path), "/manhunt/calendar/{token}": "/manhunt/calendar/shop~primary~AAAA"}
        for path, methods in json.loads(self.server.request("GET", "/openapi.json")[1])["paths"].items():
            if not path.startswith(("/manhunt", "/v2/enqueue", "/v2/change")):
                continue
            path = tokens.get(path, path)
            for name, value in names.items():
                path = path.replace(name, value)
            for method in methods:
                self.assertIn((method.upper(), path), walked)

    def strangers(self):
        yield "nobody", {}
        yield "another system's token", self.other
        yield "a wrong token", {"Authorization": "Bearer tab_x_y"}
        yield "a wrong key", {"X-Manhunt-Key": "whsec_AAAA"}
        yield "an empty key", {"X-Manhunt-Key": ""}
        yield "another domain's key", self.rival_key
        yield "another domain's key and another system's token", {**self.rival_key, **self.other}

    def test_no_stranger_sees_or_changes_anything(self):
        before = self.all_of_shop()
        routes = [(method, "/manhunt/shop" + path, body) for method, path, body in self.domain_routes()] + list(self.house_routes())
        for name, headers in self.strangers():
            for method, path, body in routes:
                with self.subTest(who=name, method=method, path=path):
                    response, content = self.ask(method, path, body, headers)
                    self.assertIn(response.status, (401, 403), content)
                    self.assertNotIn(b"Ann", content)
        self.assertEqual(self.all_of_shop(), before)

    def test_doors_open_to_their_own_proof_alone(self):
        before = self.all_of_shop()
        for method, path, body, expected in self.doors():
            with self.subTest(method=method, path=path):
                response, content = self.ask(method, path, body, {})
                self.assertEqual(response.status, expected, content)
                self.assertNotIn(b"Ann", content)
        self.assertEqual(self.all_of_shop(), before)

    def test_who_reads_changes_nothing(self):
        before = self.all_of_shop()
        for method, path, body in self.domain_routes():
            with self.subTest(method=method, path=path):
                response, content = self.ask(method, "/manhunt/shop" + path, body, self.reader)
                self.assertEqual(response.status, 200 if method == "GET" else 403, content)
        self.assertEqual(self.all_of_shop(), before)

    def test_who_reads_cannot_answer_by_what_they_read(self):
        search = self.shop.search(self.shop.contact("Bob", ("text", "+390644444444")))
        wait_until(lambda: self.shop.find(search)["attempts"])
        link = re.search(r"/manhunt/r/\S+", self.shop.find(search)["attempts"][0]["text"])[0]
        seen = [self.ask("GET", path, None, self.reader)[1].decode() for path in (f"/manhunt/shop/searches/{search['id']}", "/manhunt/simulator", f"/manhunt/shop/searches/{search['id']}/timeline")]
        self.assertIn("/manhunt/r/…", seen[0])
        for text in seen:
            self.assertNotIn(link, text)
        self.assertEqual(self.ask("GET", link, None, {})[0].status, 200)
        # With a routing key one could end searches.
        for path in ("/policies", "/policies/oncall"):
            self.assertNotIn(self.routing_key.encode(), self.ask("GET", "/manhunt/shop" + path, None, self.reader)[1])
            self.assertIn(self.routing_key.encode(), self.ask("GET", "/manhunt/shop" + path, None, self.key)[1])

    def test_another_domain_has_none_of_it(self):
        """With its own key, in its own place, by the names and ids of `shop`."""
        before = [row for row in self.all_of_shop() if "rival" not in row]
        # What makes one of the rival's own, and what there is in every domain.
        own = ("PUT", ""), ("POST", "/contacts"), ("POST", "/secret"), ("PUT", "/policies/oncall"), ("DELETE", "/policies/oncall"), ("PUT", "/templates/text/en"), ("PUT", "/schedules/primary"), ("PUT", "/maintenance/move"), ("PUT", "/heartbeats/backup")
        for method, path, body in self.domain_routes():
            if (method, path) in own:
                continue
            with self.subTest(method=method, path=path):
                response, content = self.ask(method, "/manhunt/rival" + path, body, self.rival_key)
                if method == "GET" and (path.count("/") <= 1 or path == "/policies/oncall/searches"):
                    self.assertEqual(response.status, 200, content)  # a list, or the settings
                else:
                    self.assertIn(response.status, (400, 404), content)
                self.assertNotIn(b"Ann", content)
        self.assertEqual([row for row in self.all_of_shop() if "rival" not in row], before)

    def test_a_policy_or_a_schedule_leads_to_none_of_another_domain(self):
        contact = {"contact": self.ann["id"]}
        self.rival.call("PUT", "/policies/spy", {"steps": [{"wait": "1m", "targets": [contact]}]}, 400)
        self.rival.call("PUT", "/policies/spy", {"steps": [{"wait": "1m", "targets": [{"schedule": "primary"}]}]}, 400)
        self.rival.call("PUT", "/heartbeats/spy", {"every": "1m", **contact}, 400)
        rotations = [{"contacts": [self.ann["id"]], "start": "2026-01-05T09:00:00", "unit": "week"}]
        response, content = self.ask("PUT", "/manhunt/rival/schedules/spy", {"rotations": rotations}, self.rival_key)
        if response.status == 200:  # it may name whom it likes, but nobody comes of it
            self.rival.policy("spy", ("200ms", {"schedule": "spy"}))
            found = self.rival.until(self.rival.search(policy="spy"), "failed")
            self.assertEqual((found["resolution"]["how"], found["attempts"]), ("nobody", []))

    def test_a_page_goes_on_in_its_own_list_only(self):
        for name in ("Bob", "Cy"):
            self.shop.contact(name)
        cursor = self.shop.call("GET", "/contacts?limit=1")["next"]
        response, content = self.ask("GET", f"/manhunt/rival/contacts?limit=10&next={cursor}", None, self.rival_key)
        self.assertNotIn(b"Bob", content)
        self.assertNotIn(b"Cy", content)
        self.assertLess(response.status, 500, content)

    def test_the_domains_key_is_good_for_its_domain(self):
        shop = Domain(self.server, "shop", self.key)
        self.assertEqual(shop.find(self.search)["id"], self.search["id"])
        shop.call("POST", "/contacts", {"name": "By key"}, 201)


if __name__ == "__main__":
    unittest.main(verbosity=2)
