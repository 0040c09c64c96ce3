"""The doors of other systems: Prometheus Alertmanager itself, by PagerDuty's Events API v2 and by its webhook, with only the URL changed; what
clients of PagerDuty are answered; Grafana's webhook."""

import json
import os
import unittest

from alertmanager import Alertmanager, config_for
from manhunt_server import Domain, ManhuntServer, wait_until

os.environ.setdefault("ALERTMANAGER", os.path.join(os.path.dirname(__file__), "../../build/alertmanager/usr/bin/prometheus-alertmanager"))
LABELS = {"alertname": "DiskFull", "instance": "db1", "severity": "critical"}


class Doors(unittest.TestCase):
    domains = 0

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ManhuntServer())

    def setUp(self):
        Doors.domains += 1
        self.domain = Domain(self.server, f"shop{Doors.domains}")
        self.ann = self.domain.contact("Ann", ("phone", "+390612345678"))
        self.key = self.domain.policy("shop", ("5m", {"contact": self.ann["id"]}), repeat=1)["routing_key"]

    def url(self, path):
        return f"http://127.0.0.1:{self.server.http}{path}"

    def searches(self, status=None):
        return self.domain.call("GET", "/searches" + (f"?status={status}" if status else ""))["searches"]

    def send(self, body, expect=202):
        response, content = self.server.request("POST", "/v2/enqueue", body if isinstance(body, (str, bytes)) else json.dumps(body))
        self.assertEqual(response.status, expect, content)
        return json.loads(content)

    def event(self, action="trigger", key="disk db1", **payload):
        return {"routing_key": self.key, "event_action": action, "dedup_key": key,
                **({"payload": {"summary": "Disk full on db1", "source": "db1", "severity": "critical", **payload}} if action == "trigger" else {})}


class RealAlertmanager(Doors):
    def fire_and_resolve(self, receiver, summary):
        with Alertmanager(config_for(receiver)) as alertmanager:
            alertmanager.fire(LABELS, {"summary": "Disk full on db1"})
            wait_until(lambda: self.searches("active"))
            search, = self.searches()
            self.assertIn("Disk full on db1", json.dumps(search["metadata"]))
            phone, = self.domain.ring(search)
            self.assertIn(summary, phone["text"])
            alertmanager.resolve(LABELS, {"summary": "Disk full on db1"})
            ended = self.domain.until(search, "canceled")
            self.assertEqual(ended["resolution"]["how"], "resolved")
            wait_until(lambda: not self.domain.phones())
            # The same alert again is another search.
            alertmanager.fire(LABELS, {"summary": "Disk full on db1"})
            wait_until(lambda: len(self.searches()) == 2)
            again, = self.searches("active")
            self.domain.press(self.domain.ring(again)[0], "1")
            self.assertEqual(self.domain.until(again, "successful")["resolution"]["how"], "simulator")
            # It ends, and what somebody has accepted stays accepted.
            alertmanager.resolve(LABELS)
            wait_until(lambda: "Notify success" in alertmanager.log() and alertmanager.log().count("Notify success") >= 4, 20)
            self.assertEqual(self.domain.find(again)["status"], "successful")
            self.assertNotIn("Notify for alerts failed", alertmanager.log())

    def test_by_pagerdutys_events(self):
        self.fire_and_resolve(f"""
pagerduty_configs:
  - url: {self.url("/v2/enqueue")}
    routing_key: {self.key}
    description: '{{{{ .CommonAnnotations.summary }}}}'
    severity: '{{{{ .CommonLabels.severity }}}}'
""", "Disk full on db1")

    def test_by_pagerdutys_events_without_any_template_of_ones_own(self):
        self.fire_and_resolve(f"pagerduty_configs:\n  - url: {self.url('/v2/enqueue')}\n    routing_key: {self.key}", "DiskFull")

    def test_by_its_webhook(self):
        self.fire_and_resolve(f"webhook_configs:\n  - url: {self.url('/manhunt/alertmanager/' + self.key)}", "Disk full on db1")

    def test_an_alert_that_keeps_firing_searches_once(self):
        with Alertmanager(config_for(f"webhook_configs:\n  - url: {self.url('/manhunt/alertmanager/' + self.key)}", repeat_interval="300ms")) as alertmanager:
            alertmanager.fire(LABELS)
            wait_until(lambda: alertmanager.log().count("Notify success") >= 4)
            self.assertEqual(len(self.searches()), 1)


class PagerDutysEvents(Doors):
    def test_a_trigger_opens_a_search_once(self):
        self.assertEqual(self.send(self.event()), {"status": "success", "message": "Event processed", "dedup_key": "disk db1"})
        self.send(self.event())
        search, = self.searches()
        self.assertEqual((search["status"], search["policy"], search["key"]), ("active", "shop", "disk db1"))

    def test_without_a_key_each_trigger_is_an_event_of_its_own(self):
        event = self.event()
        del event["dedup_key"]
        first, second = self.send(event)["dedup_key"], self.send(event)["dedup_key"]
        self.assertNotEqual(first, second)
        self.assertEqual(sorted(search["key"] for search in self.searches()), sorted([first, second]))

    def test_acknowledge_and_resolve(self):
        self.send(self.event())
        search, = self.searches()
        self.assertEqual(self.send(self.event("acknowledge")), {"status": "success", "message": "Event processed", "dedup_key": "disk db1"})
        self.assertEqual(self.domain.find(search)["status"], "successful")
        self.send(self.event())  # somebody is at it
        self.assertEqual(len(self.searches()), 1)
        self.send(self.event("resolve"))
        self.assertEqual(self.domain.find(search)["status"], "successful")
        self.send(self.event())
        self.assertEqual(len(self.searches()), 2)
        self.send(self.event("resolve"))
        self.assertEqual({search["status"] for search in self.searches()}, {"successful", "canceled"})
        for action in ("acknowledge", "resolve"):
            self.send(self.event(action, key="nobody knows it"))

    def test_what_warns_only_waits_for_the_end_of_the_night(self):
        for severity, urgency in (("critical", "high"), ("error", "high"), ("warning", "low"), ("info", "low")):
            self.send(self.event(key=severity, severity=severity))
            search, = [search for search in self.searches() if search["key"] == severity]
            self.assertEqual(search["urgency"], urgency, severity)

    def test_what_is_wrong_is_said_as_pagerduty_says_it(self):
        def errors(**changes):
            event = {**self.event(), **changes}
            answer = self.send({name: value for name, value in event.items() if value is not None}, 400)
            self.assertEqual((answer["status"], answer["message"]), ("invalid event", "Event object is invalid"))
            return answer["errors"]

        self.assertEqual(errors(routing_key=None), ["'routing_key' cannot be blank"])
        self.assertEqual(errors(routing_key="short"), ["Length of 'routing_key' is incorrect (should be 32 characters)"])
        self.assertEqual(errors(routing_key="0" * 32), ["Invalid routing key"])
        self.assertEqual(errors(event_action=None)[0], "'event_action' is missing or blank")
        self.assertIn("'event_action' is invalid", errors(event_action="ring")[0])
        self.assertEqual(errors(event_action="resolve", dedup_key=None), ["'dedup_key' is missing or blank"])
        self.assertEqual(errors(payload=None), [f"'payload.{name}' is missing or blank" for name in ("summary", "source", "severity")])
        self.assertIn("'payload.severity' is invalid", errors(payload={"summary": "a", "source": "b", "severity": "awful"})[0])
        self.assertIn("too long", errors(dedup_key="k" * 256)[0])
        self.assertIn("must be a string", errors(dedup_key=7)[0])
        self.assertIn("too long", errors(payload={"summary": "ü" * 1025, "source": "b", "severity": "info"})[0])
        for body in ("", "{", "[]", '"x"', b"\xff\xfe"):
            self.assertEqual(self.send(body, 400)["status"], "Unrecognized object", body)
        self.assertEqual(self.searches(), [])

    def test_the_largest_event_and_one_beyond(self):
        self.send(self.event(custom_details={"lines": ["x" * 1000] * 500}))
        search, = self.searches()
        self.assertEqual(search["metadata"], {"summary": "Disk full on db1", "source": "db1", "severity": "critical", "truncated": True})
        self.domain.press(self.domain.ring(search)[0], "1")
        self.domain.until(search, "successful")
        response, content = self.server.request("POST", "/v2/enqueue", json.dumps(self.event(key="too large", custom_details={"text": "x" * 600_000})))
        self.assertEqual(response.status, 413, content)

    def test_details_reach_the_templates(self):
        self.domain.call("PUT", "/templates/phone/en", {"text": "{{summary}} at {{source}}: {{custom_details.free}} free, {{client}}"})
        self.send({**self.event(custom_details={"free": "2%"}), "client": "Checks"})
        phone, = self.domain.ring(self.searches()[0])
        self.assertIn("Disk full on db1 at db1: 2% free, Checks", phone["text"])

    def test_change_events_search_for_nobody(self):
        body = {"routing_key": self.key, "payload": {"summary": "Deployed", "source": "ci"}}
        response, content = self.server.request("POST", "/v2/change/enqueue", json.dumps(body))
        self.assertEqual((response.status, json.loads(content)["status"]), (202, "success"))
        self.assertEqual(self.searches(), [])


class Webhooks(Doors):
    def post(self, body, key=None, expect=200, method="POST"):
        response, content = self.server.request(method, f"/manhunt/alertmanager/{key or self.key}", json.dumps(body))
        self.assertEqual(response.status, expect, content)

    def test_grafanas(self):
        alert = {"status": "firing", "labels": {"alertname": "Slow"}, "annotations": {}, "fingerprint": "c6eadffa33fcdf37"}
        body = {"receiver": "oncall", "status": "firing", "orgId": 1, "alerts": [alert], "groupLabels": {"alertname": "Slow"},
                "commonLabels": {"alertname": "Slow"}, "commonAnnotations": {}, "externalURL": "http://localhost:3000/", "version": "1",
                "groupKey": '{}:{alertname="Slow"}', "truncatedAlerts": 0, "title": "[FIRING:1] Slow", "state": "alerting", "message": "**Firing**"}
        for method in ("POST", "PUT"):  # Grafana offers both
            self.post(body, method=method)
        search, = self.searches()
        self.assertEqual(search["metadata"]["summary"], "[FIRING:1] Slow")
        self.post({**body, "status": "resolved"})
        self.assertEqual(self.domain.find(search)["status"], "canceled")

    def test_a_group_of_several_alerts_says_what_the_first_does(self):
        alert = lambda name, status="firing": {"status": status, "labels": {"alertname": name, "instance": f"{name}1"}, "annotations": {"summary": f"{name} is down"}}
        self.post({"status": "firing", "groupKey": "g", "commonLabels": {}, "commonAnnotations": {}, "alerts": [alert("web", "resolved"), alert("db"), alert("mail")]})
        search, = self.searches()
        self.assertEqual((search["metadata"]["summary"], search["metadata"]["count"]), ("db is down (+2 more)", 3))
        self.assertEqual(search["metadata"]["alerts"][1]["labels"]["instance"], "db1")

    def test_a_group_that_is_very_large(self):
        alerts = [{"status": "firing", "labels": {"alertname": "Disk", "text": "x" * 50_000}, "annotations": {}}] * 40
        self.post({"status": "firing", "groupKey": "g", "alerts": alerts})
        search, = self.searches()
        self.assertEqual((search["metadata"]["count"], search["metadata"]["truncated"]), (40, True))

    def test_what_is_no_alert_is_refused(self):
        self.post({"status": "firing"}, key="0" * 32, expect=404)
        for body in ({}, [], {"status": "perhaps"}, {"status": 7}):
            self.post(body, expect=400)
        self.assertEqual(self.searches(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
