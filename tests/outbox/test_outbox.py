"""The outbox over HTTP, with what it sends caught by our own mail. Runs on the embedded store, on a remote one, and with emails in MariaDB."""

import base64
import concurrent.futures
import email
import email.policy
import http.client
import json
import os
import shutil
import smtplib
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import uuid

import boto3

sys.path.insert(0, os.path.dirname(__file__))
from outbox_server import BINARY, ON, Mariadb, OutboxServer, Receiver, at, certificate, quoted, signature, simple_email, wait_until

SECRET = "whsec_" + base64.b64encode(b"only the two of us know it").decode()


def tearDownModule():
    Mariadb.stop()


def parsed(raw):
    return email.message_from_bytes(raw, policy=email.policy.default)


class OnOneServer(unittest.TestCase):
    """Tests that do not disturb each other."""
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = OutboxServer(*cls.options)
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.__enter__()

    def refuse(self, expected="", **payload):
        """An email that is not taken; why not."""
        result = self.server.post(simple_email(**payload), expect=422)["results"][0]
        self.assertEqual(result["status"], "REJECTED")
        self.assertIn(expected, result["error"])
        return result["error"]


class Sending(OnOneServer):
    def test_curl_sends_and_the_message_is_in_our_mail(self):
        sent = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", f"http://127.0.0.1:{self.server.http}/outbox/emails", "-d",
                               json.dumps({"data": [simple_email(subject="by curl", body_html="<p>Thank you!</p>", cc="Bob <bob@example.org>", bcc=["eve@example.org"])]})],
                              capture_output=True, text=True, check=True).stdout
        answer, status = sent.rsplit("\n", 1)
        self.assertEqual(status, "201")
        answer = json.loads(answer)
        self.assertEqual(answer["summary"], {"total": 1, "accepted": 1, "rejected": 0})
        self.assertEqual(answer["results"][0]["status"], "ACCEPTED")
        identifier = answer["results"][0]["id"]
        shown = self.server.wait_for(identifier, "SENT")
        self.assertEqual([r["result"] for r in shown["message"]["recipients"]], ["delivered"] * 3)
        self.assertEqual([step["status"] for step in shown["history"]][-3:], ["READY", "PROCESSING", "SENT"])
        self.assertEqual((shown["message"]["attempts"], shown["attempts"][0]["outcome"], shown["attempts"][0]["repeated"]), (1, "delivered", False))
        self.assertEqual(self.server.call("GET", f"/outbox/emails/{identifier}/attempts")["attempts"], shown["attempts"])
        found = self.server.captured('subject:"by curl"')
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0]["envelope"]["from"], "shop@example.com")
        self.assertEqual(found[0]["envelope"]["to"], ["ann@example.org", "bob@example.org", "eve@example.org"])
        message = parsed(self.server.raw(identifier))
        self.assertEqual((message["From"], message["To"], message["Cc"], message["Bcc"]), ("Shop <shop@example.com>", "ann@example.org", "Bob <bob@example.org>", None))
        self.assertTrue(message["Message-ID"].startswith(f"<{identifier}@"))
        self.assertIsNotNone(message["Date"].datetime)
        self.assertEqual(message["MIME-Version"], "1.0")
        self.assertEqual([part.get_content().strip() for part in message.iter_parts()], ["Thank you!", "<p>Thank you!</p>"])

    def test_what_is_beyond_ascii_and_attached_arrives_as_it_was(self):
        content = os.urandom(700_000)  # more than one row has room for
        identifier = self.server.submit(subject="Grüße aus Αθήνα " + 40 * "ß", body_text="Straße\n.\n..\n", **{"from": "Jörg Müller <joerg@example.com>"}, reply_to="Ω <o@example.com>",
                                        custom_headers={"X-Order": "Nummer fünf"}, labels={"campaign": "autumn"},
                                        attachments=[{"name": "größe.bin", "content": base64.b64encode(content).decode(), "content_type": "application/zip"}])
        shown = self.server.wait_for(identifier, "SENT")
        self.assertEqual(shown["message"]["labels"], {"campaign": "autumn"})
        raw = self.server.raw(identifier)
        self.assertTrue(raw.isascii())
        self.assertLessEqual(max(map(len, raw.split(b"\r\n"))), 998)
        message = parsed(raw)
        self.assertEqual(message["Subject"], "Grüße aus Αθήνα " + 40 * "ß")
        self.assertEqual(message["From"].addresses[0].display_name, "Jörg Müller")
        self.assertEqual(message["Reply-To"].addresses[0].display_name, "Ω")
        self.assertEqual(message["X-Order"], "Nummer fünf")
        text, attachment = message.iter_parts()
        self.assertEqual(text.get_content().splitlines(), ["Straße", ".", ".."])
        self.assertEqual((attachment.get_filename(), attachment.get_content_type()), ("größe.bin", "application/zip"))
        self.assertEqual(attachment.get_content(), content)
        caught = next(m for m in self.server.captured("has:attachment") if identifier in json.dumps(m) or m["subject"].startswith("Grüße"))
        self.assertEqual(self.server.request("GET", f"/api/v3/messages/{quoted(caught['id'])}/raw")[1], raw)

    def test_all_some_or_none_are_taken(self):
        good, bad = simple_email(subject="one of several"), simple_email(to=["nobody"])
        self.assertEqual(self.server.post(good, good, expect=201)["summary"], {"total": 2, "accepted": 2, "rejected": 0})
        some = self.server.post(good, bad, expect=200)
        self.assertEqual(some["summary"], {"total": 2, "accepted": 1, "rejected": 1})
        self.assertEqual([r["status"] for r in some["results"]], ["ACCEPTED", "REJECTED"])
        self.assertTrue(some["results"][1]["error"])
        self.assertEqual(self.server.post(bad, bad, expect=422)["summary"], {"total": 2, "accepted": 0, "rejected": 2})
        for body, expected in (("", 400), ("[]", 400), ('{"data": {}}', 422), ('{"data": [], "more": 1}', 400), ('{"data": [1]}', 422)):
            self.assertEqual(self.server.request("POST", "/outbox/emails", body)[0].status, expected, body)

    def test_what_is_no_email_is_refused_with_a_sentence(self):
        self.refuse("subjekt", subjekt="misspelt")
        self.refuse("recipient", to=[])
        self.refuse("from", **{"from": ["a@example.com", "b@example.com"]})
        self.refuse("send_at", send_at="tomorrow")
        self.refuse("priority", priority="urgent")
        self.refuse("labels", labels=["a"])
        self.refuse("callback_url", callback_url="gopher://example.com")
        self.refuse("base64", attachments=[{"name": "a", "content": "%%%"}])
        self.refuse("either", attachments=[{"uri": "http://example.com/a", "path": "a"}])
        self.refuse("recipients", to=[f"user{n}@example.org" for n in range(1001)])
        self.refuse("no template", template={"name": "nowhere"})
        without = simple_email()
        del without["body_text"]
        self.assertIn("body_text", self.server.post(without, expect=422)["results"][0]["error"])

    def test_a_second_email_of_the_same_id_leaves_the_first_untouched(self):
        identifier = str(uuid.uuid4())
        self.server.submit(id=identifier, subject="the first")
        before = self.server.wait_for(identifier, "SENT")
        again = self.server.post(simple_email(id=identifier, subject="the second"), expect=422)
        self.assertEqual((again["results"][0]["id"], again["results"][0]["status"]), (identifier, "DUPLICATE"))
        both = self.server.post(simple_email(id=identifier), simple_email(subject="another"), expect=200)
        self.assertEqual([r["status"] for r in both["results"]], ["DUPLICATE", "ACCEPTED"])
        self.server.wait_for(both["results"][1]["id"], "SENT")
        self.assertEqual(self.server.show(identifier), before)
        self.assertEqual(parsed(self.server.raw(identifier))["Subject"], "the first")
        self.assertEqual((len(self.server.captured('subject:"the first"')), len(self.server.captured('subject:"the second"'))), (1, 0))

    def test_one_id_sent_by_many_at_once_is_one_email(self):
        identifier = str(uuid.uuid4())
        body = json.dumps({"data": [simple_email(id=identifier, subject="raced")]})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: self.server.request("POST", "/outbox/emails", body), range(8)))
        self.assertEqual(sorted(r.status for r, _ in answers), [201] + 7 * [422])
        self.server.wait_for(identifier, "SENT")
        self.assertEqual(len(self.server.captured("subject:raced")), 1)

    def test_an_idempotency_key_has_one_answer(self):
        key = str(uuid.uuid4())
        body = json.dumps({"data": [simple_email(subject="only once"), simple_email(to="nobody")]})
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(lambda _: self.server.request("POST", "/outbox/emails", body, {"Idempotency-Key": key}), range(5)))
        self.assertEqual({r.status for r, _ in answers}, {200})
        self.assertEqual(len({content for _, content in answers}), 1)
        self.assertEqual(sorted(str(r.getheader("Idempotency-Replayed")) for r, _ in answers), ["None"] + 4 * ["true"])
        self.server.wait_for(json.loads(answers[0][1])["results"][0]["id"], "SENT")
        self.assertEqual(len(self.server.captured('subject:"only once"')), 1)
        response, content = self.server.request("POST", "/outbox/emails", json.dumps({"data": [simple_email()]}), {"Idempotency-Key": key})
        self.assertEqual((response.status, json.loads(content)["error"]), (422, "this Idempotency-Key was used for another request"))

    def test_an_email_waits_for_its_time(self):
        begun = time.time()
        identifier = self.server.submit(subject="later", send_at=at(2.5))
        self.assertEqual(self.server.status(identifier), "READY")
        shown = self.server.wait_for(identifier, "SENT")
        self.assertGreaterEqual(time.time() - begun, 2.4)
        self.assertLess(time.time() - begun, 12)
        self.assertGreaterEqual(shown["attempts"][0]["began"], shown["message"]["send_at"][:19])

    def test_cancelled_it_is_not_sent_and_requeued_it_is(self):
        identifier = self.server.submit(subject="regretted", send_at=at(3600))
        self.assertIn("next_attempt_at", self.server.show(identifier)["message"])
        self.server.call("POST", f"/outbox/emails/{identifier}/cancel", expect=202)
        shown = self.server.show(identifier)
        self.assertEqual((shown["status"], shown["reason"], shown["message"]["recipients"][0]["result"]), ("FAILED", "cancelled", "failed"))
        self.server.call("POST", f"/outbox/emails/{identifier}/cancel", expect=409)
        self.assertIn(identifier, [e["id"] for e in self.server.call("GET", "/outbox/dead-letters?limit=500")["emails"]])
        self.assertEqual(self.server.captured("subject:regretted"), [])
        self.server.call("POST", f"/outbox/emails/{identifier}/requeue", expect=202)
        self.server.wait_for(identifier, "SENT")
        self.assertEqual(len(self.server.captured("subject:regretted")), 1)
        for what in ("cancel", "requeue"):
            self.server.call("POST", f"/outbox/emails/{identifier}/{what}", expect=409)
            self.server.call("POST", f"/outbox/emails/nowhere/{what}", expect=404)
        for path in ("nowhere", "nowhere/raw", "nowhere/attempts"):
            self.server.call("GET", f"/outbox/emails/{path}", expect=404)
        self.server.call("POST", "/outbox/emails/nowhere/callback", expect=409)

    def test_lists_have_pages_and_every_email_once(self):
        ids = {self.server.submit(send_at=at(7200)) for _ in range(12)}
        for query in ("status=READY&", ""):
            seen, next_page, pages = [], "", 0
            while next_page is not None:
                page = self.server.call("GET", f"/outbox/emails?{query}limit=5{next_page}")
                self.assertLessEqual(len(page["emails"]), 5)
                seen += [e["id"] for e in page["emails"] if e["id"] in ids]
                next_page = "&from=" + quoted(page["next"]) if "next" in page else None
                pages += 1
            self.assertEqual(sorted(seen), sorted(ids))
            self.assertGreaterEqual(pages, 3)
        for query in ("status=WAITING", "limit=0", "from=0:nonsense"):
            self.server.call("GET", f"/outbox/emails?{query}", expect=400)

    def test_an_attachment_is_fetched_by_its_address(self):
        with Receiver(otherwise=200, content=b"fetched", content_type="application/pdf") as files:
            identifier = self.server.submit(subject="fetched", attachments=[files.url + "/bill.pdf?x=1", {"uri": files.url, "name": "other.bin", "content_type": "application/zip"}])
            shown = self.server.wait_for(identifier, "SENT")
        self.assertEqual([step["status"] for step in shown["history"]], ["ACCEPTED", "INTAKING", "READY", "PROCESSING", "SENT"])
        _, *attached = parsed(self.server.raw(identifier)).iter_parts()
        self.assertEqual([(a.get_filename(), a.get_content_type(), a.get_content()) for a in attached],
                         [("bill.pdf", "application/pdf", b"fetched"), ("other.bin", "application/zip", b"fetched")])

    def test_an_attachment_that_is_not_there_makes_it_invalid_and_one_that_will_be_does_not(self):
        with Receiver(404, 503, otherwise=200, content=b"x") as files:
            gone = self.server.submit(subject="gone", attachments=[files.url])
            shown = self.server.wait_for(gone)
            self.assertEqual(shown["status"], "INVALID")
            self.assertIn("404", shown["reason"])
            self.assertIn(gone, [e["id"] for e in self.server.call("GET", "/outbox/invalid-emails?limit=500")["emails"]])
            late = self.server.submit(subject="late", attachments=[files.url])
            self.server.wait_for(late, "SENT")
            self.server.call("POST", f"/outbox/emails/{gone}/requeue", expect=202)
            self.server.wait_for(gone, "SENT")
            self.assertEqual(len(files.calls), 4)

    def test_it_is_well(self):
        self.assertEqual(self.server.call("GET", "/outbox/health-check"), {"status": "ok"})


class Suppression(OnOneServer):
    def test_nothing_goes_to_who_is_on_the_list(self):
        self.server.call("POST", "/outbox/suppression", {"address": "Gone@Example.org"}, expect=201)
        self.server.call("POST", "/outbox/suppression", {"address": "nobody"}, expect=400)
        self.server.call("POST", "/outbox/suppression", {"address": "a@example.org", "reason": "whim"}, expect=400)
        listed = self.server.call("GET", "/outbox/suppression")["addresses"]
        self.assertEqual([(one["address"], one["reason"]) for one in listed], [("gone@example.org", "MANUAL")])
        both = self.server.wait_for(self.server.submit(subject="half", to=["gone@example.org", "there@example.org"]), "SENT")
        self.assertEqual([r["result"] for r in both["message"]["recipients"]], ["suppressed", "delivered"])
        self.assertEqual(self.server.captured("subject:half")[0]["envelope"]["to"], ["there@example.org"])
        alone = self.server.submit(subject="suppressed", to="GONE@example.org")
        shown = self.server.wait_for(alone)
        self.assertEqual((shown["status"], shown["message"]["recipients"][0]["result"]), ("FAILED", "suppressed"))
        self.assertEqual(self.server.captured("subject:suppressed"), [])
        self.server.call("DELETE", "/outbox/suppression/" + quoted("GONE@example.org"))
        self.server.call("DELETE", "/outbox/suppression/" + quoted("gone@example.org"), expect=404)
        self.server.call("POST", f"/outbox/emails/{alone}/requeue", expect=202)
        self.server.wait_for(alone, "SENT")

    def test_the_list_has_pages(self):
        addresses = [f"user{n:02}@pages.example" for n in range(7)]
        for address in addresses:
            self.server.call("POST", "/outbox/suppression", {"address": address, "reason": "COMPLAINT"}, expect=201)
        seen, page = [], {"next": ""}
        while "next" in page:
            page = self.server.call("GET", "/outbox/suppression?limit=3&from=" + quoted(page["next"]))
            self.assertLessEqual(len(page["addresses"]), 3)
            seen += [one["address"] for one in page["addresses"] if one["address"].endswith("@pages.example")]
        self.assertEqual(seen, addresses)


class Pauses(OnOneServer):
    def test_a_domain_that_is_paused_waits_and_others_go(self):
        self.server.call("PUT", "/outbox/pauses/Paused.example", {"reason": "their server is down"})
        listed = self.server.call("GET", "/outbox/pauses")["pauses"]
        self.assertEqual([(p["destination"], p["reason"]) for p in listed], [("paused.example", "their server is down")])
        waiting = [self.server.submit(to=f"user{n}@paused.example") for n in range(3)]
        self.server.wait_for(self.server.submit(to="ann@other.example"), "SENT")
        time.sleep(1.5)
        self.assertEqual({self.server.status(identifier) for identifier in waiting}, {"READY"})
        self.server.call("DELETE", "/outbox/pauses/paused.example")
        for identifier in waiting:
            self.assertEqual(self.server.wait_for(identifier, "SENT")["message"]["attempts"], 1)
        wait_until(lambda: self.server.call("GET", "/outbox/pauses")["pauses"] == [])
        self.server.call("DELETE", "/outbox/pauses/paused.example", expect=404)

    def test_everything_can_be_paused_and_is_over_a_restart(self):
        self.server.call("PUT", "/outbox/pauses/*")
        identifier = self.server.submit(subject="all paused")
        cancelled = self.server.submit(subject="paused and cancelled")
        self.server.restart()
        time.sleep(1.5)
        self.assertEqual(self.server.status(identifier), "READY")
        self.server.call("POST", f"/outbox/emails/{cancelled}/cancel", expect=202)
        self.server.call("DELETE", "/outbox/pauses/*")
        self.server.wait_for(identifier, "SENT")
        self.assertEqual(self.server.status(cancelled), "FAILED")
        self.assertEqual(len(self.server.captured('subject:"all paused"')), 1)
        self.assertEqual(self.server.captured('subject:"paused and cancelled"'), [])


class LongPauses(unittest.TestCase):
    """Longer than an email is tried and kept (34 days)."""

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="tabella-test-")
        self.addCleanup(shutil.rmtree, folder)
        self.ahead, self.days = os.path.join(folder, "time"), 0
        self.advance(0)
        if ON == "mysql":
            Mariadb.get()  # whose clock stays as it is
        # For the process that is the store of another, too.
        with unittest.mock.patch.dict(os.environ, LD_PRELOAD=os.environ["MOVE_TIME"], MOVE_TIME_FILE=self.ahead):
            self.server = OutboxServer("--outbox-route", "closed.example=smtp://127.0.0.1:1").__enter__()
        self.addCleanup(self.server.__exit__)
        self.tables = self.server.tables()
        self.addCleanup(self.tables.close)

    def advance(self, days):
        self.days += days
        with open(self.ahead, "r+b" if self.days else "wb") as file:
            file.write((self.days * 86400 * 10**9).to_bytes(8, "little"))

    def rows(self, identifier):
        """What the outbox has of it beside its state."""
        return self.tables.query(TableName="tabella-outbox-messages", KeyConditionExpression="id = :id",
                                 ExpressionAttributeValues={":id": {"S": identifier}})["Items"]

    def wait_until_parked(self, *identifiers):
        for identifier in identifiers:
            wait_until(lambda: any(row.get("shard", {"S": ""})["S"].startswith("paused-") for row in self.rows(identifier)))

    def is_gone(self, identifier):
        status = self.server.request("GET", f"/outbox/emails/{identifier}")[0].status
        # MySQL's states go by its own clock; what we have of it goes with the store's.
        return self.rows(identifier) == [] if ON == "mysql" else status == 404

    def outlive(self, pause, *waiting):
        """Those that wait outlive an email that is over."""
        over = self.server.submit(to="ann@other.example")
        self.server.wait_for(over, "SENT")
        self.server.call("PUT", f"/outbox/pauses/{pause}")
        self.wait_until_parked(*waiting)
        self.advance(40)
        wait_until(lambda: self.is_gone(over))
        for identifier in waiting:
            self.assertEqual(self.server.status(identifier), "READY")

    def test_a_domain_may_be_paused_for_longer_than_emails_are_kept(self):
        self.server.call("PUT", "/outbox/pauses/paused.example")
        small, cancelled = self.server.submit(to="ann@paused.example"), self.server.submit(to="bob@paused.example")
        large = self.server.submit(to="ann@paused.example", body_text="large\n" * 100_000)
        self.outlive("paused.example", small, large, cancelled)
        self.server.call("POST", f"/outbox/emails/{cancelled}/cancel", expect=202)
        self.server.call("DELETE", "/outbox/pauses/paused.example")
        for identifier in (small, large):
            self.assertEqual(self.server.wait_for(identifier, "SENT")["message"]["attempts"], 1)
        self.assertGreater(len(self.server.raw(large)), 600_000)
        # From now on they go like others.
        self.advance(40)
        wait_until(lambda: all(self.is_gone(identifier) for identifier in (small, large, cancelled)))

    def test_everything_may_be_paused_for_longer_than_emails_are_kept(self):
        # They are in nobody's memory when the pause begins.
        later = self.server.submit(to="ann@example.org", send_at=at(3))
        self.outlive("*", later)
        self.server.call("DELETE", "/outbox/pauses/*")
        self.assertEqual(self.server.wait_for(later, "SENT")["message"]["attempts"], 1)

    def test_a_recipient_who_is_paused_is_not_given_up_with_the_others(self):
        self.server.call("PUT", "/outbox/pauses/paused.example")
        identifier = self.server.submit(to=["ann@closed.example", "bob@paused.example"])
        wait_until(lambda: self.server.show(identifier)["message"]["attempts"] > 0)
        self.advance(5)
        self.wait_until_parked(identifier)
        results = {one["address"]: one["result"] for one in self.server.show(identifier)["message"]["recipients"]}
        self.assertEqual(results, {"ann@closed.example": "failed", "bob@paused.example": "waiting"})
        self.server.call("DELETE", "/outbox/pauses/paused.example")
        results = {one["address"]: one["result"] for one in self.server.wait_for(identifier, "SENT")["message"]["recipients"]}
        self.assertEqual(results, {"ann@closed.example": "failed", "bob@paused.example": "delivered"})

    def test_an_email_that_is_requeued_lives_as_long_as_a_new_one(self):
        identifier = self.server.submit(to="ann@closed.example")
        wait_until(lambda: self.server.show(identifier)["message"]["attempts"] > 0)
        self.advance(5)
        self.server.wait_for(identifier, "FAILED")
        expires = [int(row["expires"]["N"]) for row in self.rows(identifier)]
        self.server.call("POST", f"/outbox/emails/{identifier}/requeue", expect=202)
        wait_until(lambda: min(int(row["expires"]["N"]) for row in self.rows(identifier)) > max(expires) + 4 * 86400)


class Templates(OnOneServer):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ses = boto3.client("sesv2", endpoint_url=f"http://127.0.0.1:{cls.server.http}", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        ses.create_email_template(TemplateName="order", TemplateContent={
            "Subject": "Order {{number}}", "Text": "Dear {{name}}{{#each items}}, {{this}}{{/each}}", "Html": "<p>Dear {{name}}</p>"})

    def test_a_template_is_filled(self):
        identifier = self.server.post({"from": "shop@example.com", "to": "ann@example.org",
                                       "template": {"name": "order", "data": {"number": 17, "name": "Ann", "items": ["pen", "ink"]}}})["results"][0]["id"]
        self.server.wait_for(identifier, "SENT")
        message = parsed(self.server.raw(identifier))
        self.assertEqual(message["Subject"], "Order 17")
        self.assertEqual([part.get_content().strip() for part in message.iter_parts()], ["Dear Ann, pen, ink", "<p>Dear Ann</p>"])

    def test_data_that_is_missing_is_told(self):
        error = self.server.post({"from": "shop@example.com", "to": "ann@example.org", "template": {"name": "order", "data": {"number": 1, "items": []}}}, expect=422)["results"][0]["error"]
        self.assertIn("name", error)

    def test_an_attachment_goes_with_it(self):
        with Receiver(otherwise=200, content=b"bill") as files:
            identifier = self.server.post({"from": "shop@example.com", "to": "ann@example.org", "attachments": [files.url],
                                           "template": {"name": "order", "data": {"number": 2, "name": "Bob", "items": []}}})["results"][0]["id"]
            shown = self.server.wait_for(identifier, "SENT")
        self.assertEqual(shown["message"]["subject"], "Order 2")


class Callbacks(OnOneServer):
    options = ("--outbox-callback-secret", SECRET, "--outbox-stale", "1s")

    def test_a_callback_is_signed_and_called_until_it_is_taken(self):
        with Receiver(500, 409) as receiver:
            identifier = self.server.submit(callback_url=receiver.url)
            shown = self.server.wait_for(identifier, "SENT-ACKNOWLEDGED")
            self.assertEqual([step["status"] for step in shown["history"]][-3:], ["SENT", "CALLING-SENT-CALLBACK", "SENT-ACKNOWLEDGED"])
            self.assertEqual(len(receiver.calls), 3)
            self.assertEqual(len({headers["webhook-id"] for headers, _ in receiver.calls}), 1)
            for headers, body in receiver.calls:
                self.assertEqual(headers["webhook-signature"], signature(SECRET, headers, body))
                self.assertAlmostEqual(int(headers["webhook-timestamp"]), time.time(), delta=60)
                self.assertEqual(headers["content-type"], "application/json")
            told = receiver.bodies()[2]
            self.assertEqual((told["code"], told["message_ids"]), ("TRAVELING", [identifier]))
            self.assertEqual(told["reached_at"], next(step["at"] for step in shown["history"] if step["status"] == "SENT"))
            self.assertIn("captured", told["reason"])

    def test_a_failure_is_told_too(self):
        with Receiver() as receiver:
            identifier = self.server.submit(callback_url=receiver.url, send_at=at(3600))
            self.server.call("POST", f"/outbox/emails/{identifier}/cancel", expect=202)
            shown = self.server.wait_for(identifier, "FAILED-ACKNOWLEDGED")
            self.assertEqual([step["status"] for step in shown["history"]][-3:], ["FAILED", "CALLING-FAILED-CALLBACK", "FAILED-ACKNOWLEDGED"])
            told = receiver.bodies()[0]
            self.assertEqual((told["code"], told["reason"], told["message_ids"]), ("DISPATCH-ERROR", "cancelled", [identifier]))
            # And once more, when it is sent after all.
            self.server.call("POST", f"/outbox/emails/{identifier}/requeue", expect=202)
            self.server.wait_for(identifier, "SENT-ACKNOWLEDGED")
            self.assertEqual([body["code"] for body in receiver.bodies()], ["DISPATCH-ERROR", "TRAVELING"])

    def test_only_2xx_acknowledges(self):
        with Receiver() as elsewhere, Receiver(302, 404, 500, otherwise=500, location=elsewhere.url) as receiver:
            identifier = self.server.submit(callback_url=receiver.url)
            wait_until(lambda: len(receiver.calls) >= 3, 60)
            self.assertEqual(self.server.status(identifier), "CALLING-SENT-CALLBACK")
            self.assertIn(identifier, [e["id"] for e in self.server.call("GET", "/outbox/stale-emails")["emails"]])
            receiver.otherwise = 202
            self.server.call("POST", f"/outbox/emails/{identifier}/callback", expect=202)
            self.server.wait_for(identifier, "SENT-ACKNOWLEDGED")
            self.assertNotIn(identifier, [e["id"] for e in self.server.call("GET", "/outbox/stale-emails")["emails"]])
            self.assertEqual(elsewhere.calls, [])

    def test_a_callback_can_be_played_again(self):
        with Receiver() as receiver:
            identifier = self.server.submit(callback_url=receiver.url)
            self.server.wait_for(identifier, "SENT-ACKNOWLEDGED")
            self.server.call("POST", f"/outbox/emails/{identifier}/callback", expect=202)
            wait_until(lambda: len(receiver.calls) == 2)
            self.assertEqual(receiver.calls[0][0]["webhook-id"], receiver.calls[1][0]["webhook-id"])
            self.assertEqual(receiver.bodies()[0], receiver.bodies()[1])
            self.assertEqual(self.server.status(identifier), "SENT-ACKNOWLEDGED")
        without = self.server.submit()
        self.server.wait_for(without, "SENT")
        self.server.call("POST", f"/outbox/emails/{without}/callback", expect=409)

    def test_a_callback_outlives_the_process(self):
        with Receiver(otherwise=500) as receiver:
            identifier = self.server.submit(callback_url=receiver.url)
            wait_until(lambda: receiver.calls)
            self.server.stop()
            receiver.otherwise = 204
            self.server.start()
            self.server.wait_for(identifier, "SENT-ACKNOWLEDGED")

    def test_the_operators_own_is_for_emails_without_one(self):
        with Receiver() as operators, Receiver() as own, OutboxServer("--outbox-callback", operators.url) as server:
            first, second = server.submit(), server.submit(callback_url=own.url)
            server.wait_for(first, "SENT-ACKNOWLEDGED")
            server.wait_for(second, "SENT-ACKNOWLEDGED")
            self.assertEqual([body["message_ids"] for body in operators.bodies()], [[first]])
            self.assertEqual([body["message_ids"] for body in own.bodies()], [[second]])
            self.assertNotIn("webhook-signature", operators.calls[0][0])


class Watching(unittest.TestCase):
    def events(self, server, last=None):
        """The stream's events: kind, id and data."""
        connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=30)
        connection.request("GET", "/outbox/events", headers={"Last-Event-ID": last} if last else {})
        response = connection.getresponse()
        self.assertEqual((response.status, response.getheader("Content-Type").split(";")[0]), (200, "text/event-stream"))
        fields = {}
        for line in response:
            line = line.decode().rstrip("\r\n")
            if line and not line.startswith(":"):
                name, _, value = line.partition(":")
                fields[name] = value.strip()
            elif not line and "data" in fields:
                yield fields["event"], fields.get("id"), json.loads(fields["data"])
                fields = {}

    def until(self, events, wanted, seconds=30):
        seen, deadline = [], time.monotonic() + seconds
        for event in events:
            seen.append(event)
            if wanted(event):
                return seen
            self.assertLess(time.monotonic(), deadline, seen)

    def test_counts_and_events_tell_of_every_change(self):
        with OutboxServer() as server:
            stream = self.events(server)
            self.assertEqual(next(stream)[0], "counts")
            identifier = server.submit(subject="watched")
            seen = self.until(stream, lambda event: event[0] == "email" and event[2]["id"] == identifier and event[2]["status"] == "SENT")
            middle = seen[-1][1]
            states = [event[2]["status"] for event in seen if event[0] == "email"]
            self.assertEqual(states[-1], "SENT")
            self.assertEqual(states, sorted(set(states), key=["READY", "PROCESSING", "SENT"].index))
            waiting = server.submit(send_at=at(3600))
            failed = server.submit(send_at=at(3600))
            server.call("POST", f"/outbox/emails/{failed}/cancel", expect=202)
            counts = {"READY": 1, "SENT": 1, "FAILED": 1}
            self.until(stream, lambda event: event[0] == "counts" and {state: n for state, n in event[2].items() if n} == counts)
            shown = server.call("GET", "/outbox/counts")
            self.assertEqual(len(shown), 11)
            self.assertEqual({state: n for state, n in shown.items() if n}, counts)
            # Who comes back is told what it has missed; who was away for too long, that it was.
            missed = self.until(self.events(server, middle), lambda event: event[0] == "email" and event[2]["status"] == "FAILED")
            self.assertNotIn("reset", [event[0] for event in missed])
            self.assertIn((waiting, "READY"), [(event[2]["id"], event[2]["status"]) for event in missed if event[0] == "email"])
            self.assertEqual(next(self.events(server, "long-ago-1"))[0], "reset")

    def test_counts_are_right_after_a_restart(self):
        with OutboxServer() as server:
            ids = [server.submit() for _ in range(10)]
            for identifier in ids:
                server.wait_for(identifier, "SENT")
            server.restart()
            wait_until(lambda: server.call("GET", "/outbox/counts")["SENT"] == 10)
            server.wait_for(server.submit(), "SENT")
            wait_until(lambda: server.call("GET", "/outbox/counts")["SENT"] == 11)
            self.assertEqual(sum(server.call("GET", "/outbox/counts").values()), 11)


class Scopes(unittest.TestCase):
    def test_a_token_may_do_what_its_scope_says(self):
        with OutboxServer() as server:
            where = ["--store", server.dynamodb] if ON == "remote" else ["--data", server.folder.name]
            bearer = {}
            for scope in ("send", "read", "write"):
                made = subprocess.run([BINARY, "token", "create", "--name", scope, "--scope", f"outbox:{scope}", *where], capture_output=True, text=True, check=True,
                                      env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"})
                bearer[scope] = {"Authorization": "Bearer " + made.stdout.strip()}
            wait_until(lambda: server.request("GET", "/outbox/emails")[0].status == 401)
            body = json.dumps({"data": [simple_email()]})
            for method, path, content, scope, right in (("POST", "/outbox/emails", body, "send", 201), ("GET", "/outbox/emails", None, "read", 200),
                                                        ("GET", "/outbox/events-of-nobody", None, "", 404), ("GET", "/outbox/counts", None, "read", 200),
                                                        ("POST", "/outbox/emails/x/requeue", None, "write", 404), ("PUT", "/outbox/pauses/x.example", None, "write", 200)):
                for held, headers in bearer.items():
                    expected = right if held == scope or not scope else 403
                    self.assertEqual(server.request(method, path, content, headers)[0].status, expected, (method, path, held))


class Submission(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.cert, key = certificate(folder.name)
        users = os.path.join(folder.name, "users")
        with open(users, "w") as file:
            file.write("ann:" + subprocess.run([BINARY, "bcrypt", "secret"], capture_output=True, text=True, check=True).stdout)
        cls.server = OutboxServer("--submission-tls-cert", cls.cert, "--submission-tls-key", key, "--submission-auth-file", users)
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.__enter__()

    def logged_in(self):
        client = smtplib.SMTP("127.0.0.1", self.server.submission)
        client.starttls(context=ssl.create_default_context(cafile=self.cert))
        client.login("ann", "secret")
        return client

    def test_swaks_sends_with_starttls_and_a_login(self):
        login = ["--auth-user", "ann", "--auth-password"]
        done = subprocess.run(["swaks", "--server", f"127.0.0.1:{self.server.submission}", "--tls", "--auth", "PLAIN", *login, "secret", "--from", "a@example.com",
                               "--to", "b@example.org,c@example.org", "--header", "Subject: by swaks"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        identifier = done.stdout.split("Accepted as ")[1].split()[0]
        shown = self.server.wait_for(identifier, "SENT")
        self.assertEqual((shown["message"]["door"], [r["address"] for r in shown["message"]["recipients"]]), ("submission", ["b@example.org", "c@example.org"]))
        self.assertEqual(len(self.server.captured('subject:"by swaks"')), 1)
        wrong = subprocess.run(["swaks", "--server", f"127.0.0.1:{self.server.submission}", "--tls", "--auth", "PLAIN", *login, "wrong", "--to", "b@example.org"], capture_output=True, text=True)
        self.assertIn("535", wrong.stdout)
        without = subprocess.run(["swaks", "--server", f"127.0.0.1:{self.server.submission}", "--tls", "--to", "b@example.org"], capture_output=True, text=True)
        self.assertIn("530", without.stdout)

    def test_headers_of_ours_do_not_travel(self):
        with Receiver() as receiver, self.logged_in() as client:
            client.mail("a@example.com")
            client.rcpt("b@example.org")
            code, reply = client.data(f"X-Outbox-Priority: high\r\nX-Outbox-Callback: {receiver.url}\r\nX-Outbox-Send-At: {at(1.5)}\r\nFrom: a@example.com\r\nSubject: ours\r\nBcc: c@example.org\r\n\r\nx\r\n")
            self.assertEqual(code, 250, reply)
            identifier = reply.decode().split()[-1]
            self.assertEqual(self.server.show(identifier)["message"]["priority"], "high")
            self.assertEqual(self.server.status(identifier), "READY")
            self.server.wait_for(identifier, "SENT-ACKNOWLEDGED")
            self.assertEqual(len(receiver.calls), 1)
            raw = self.server.raw(identifier)
            self.assertNotIn(b"X-Outbox", raw)
            self.assertIsNone(parsed(raw)["Bcc"])
            self.assertEqual(parsed(raw)["Message-ID"].split("@")[0], "<" + identifier)
            for header in ("X-Outbox-Priority: soon", "X-Outbox-Send-At: soon", "X-Outbox-Nothing: 1", "X-Outbox-Priority: low\r\nX-Outbox-Priority: low"):
                with self.assertRaises(smtplib.SMTPDataError):
                    client.sendmail("a@example.com", "b@example.org", header + "\r\nFrom: a@example.com\r\nSubject: x\r\n\r\nx\r\n")
            with self.assertRaises(smtplib.SMTPDataError):
                client.sendmail("a@example.com", "b@example.org", "Subject: nobody's\r\n\r\nx\r\n")

    def test_a_message_goes_out_byte_for_byte(self):
        raw = (b"Received: from somewhere\r\nFrom: a@example.com\r\nSubject: =?utf-8?q?as_it_is?=\r\n  folded\r\nMessage-ID: <own@example.com>\r\n"
               b"Date: Wed, 31 Jul 2019 11:22:56 +0000\r\nTo: b@example.org\r\n\r\n.dots\r\n..\r\ngr\xfc\xdfe \r\n\r\n")
        with self.logged_in() as client:
            client.mail("a@example.com", ["BODY=8BITMIME"])
            client.rcpt("b@example.org")
            identifier = client.data(raw)[1].decode().split()[-1]
        self.server.wait_for(identifier, "SENT")
        self.assertEqual(self.server.raw(identifier), raw)


class HeaderInjection(OnOneServer):
    """Nothing that a sender says can become a header of its own."""

    EVIL = "x\r\nX-Evil: yes"

    def test_by_the_fields_of_a_payload(self):
        for break_ in ("\r\n", "\n", "\r", "\r\n\r\n", "\0"):
            evil = f"x{break_}X-Evil: yes"
            for field in ({"subject": evil}, {"from": f'"{evil}" <a@example.com>'}, {"to": [f'"{evil}" <a@example.com>']}, {"cc": f'"{evil}" <a@example.com>'},
                          {"reply_to": f'"{evil}" <a@example.com>'}, {"custom_headers": {"X-Good": evil}}, {"custom_headers": {f"X-Good: 1{break_}X-Evil": "yes"}},
                          {"custom_headers": [{"name": "X-Good", "value": evil}]}, {"attachments": [{"name": evil, "content": ""}]},
                          {"attachments": [{"name": "a", "content": "", "content_type": "text/plain" + evil[1:]}]}, {"attachments": [{"name": "a", "content": "", "content_id": evil}]}):
                with self.subTest(field=field):
                    content = self.server.request("POST", "/outbox/emails", json.dumps({"data": [simple_email(**field)]}))[1]
                    result = json.loads(content)["results"][0]
                    if result["status"] == "ACCEPTED":
                        raw = self.server.raw(result["id"])
                        self.assertNotRegex(raw, rb"(?im)^x-evil\s*:")
                        self.assertNotRegex(raw, rb"(?<!\r)\n|\r(?!\n)|\0")

    def test_breaks_in_names_and_values_of_headers_are_refused(self):
        self.refuse(subject=self.EVIL)
        self.refuse(custom_headers={"X-Good": self.EVIL})
        self.refuse(custom_headers={"X-Evil: 1\r\nX-Good": "1"})
        for name in ("", "X Good", "X:Good", "Grüße"):
            self.refuse(custom_headers=[{"name": name, "value": "1"}])

    def test_headers_that_are_not_the_senders_cannot_be_set(self):
        for name in ("Bcc", "bcc", "From", "To", "Content-Type", "Content-Transfer-Encoding", "MIME-Version", "DKIM-Signature", "Received", "Message-ID", "Return-Path"):
            self.refuse(custom_headers={name: "evil@example.com"})

    def test_by_the_data_of_a_template(self):
        ses = boto3.client("sesv2", endpoint_url=f"http://127.0.0.1:{self.server.http}", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        ses.create_email_template(TemplateName="injected", TemplateContent={"Subject": "Dear {{name}}", "Text": "x"})
        self.assertIn("ubject", self.server.post({"from": "a@example.com", "to": "b@example.org", "template": {"name": "injected", "data": {"name": self.EVIL}}}, expect=422)["results"][0]["error"])

    def test_by_the_envelope(self):
        for address in ("a@example.com>\r\nRCPT TO:<evil@example.com", "a@exam\nple.com", "a\0@example.com", "a b@example.com"):
            self.refuse(envelope_from=address)
            self.refuse(to=[f"<{address}>"])
        self.refuse(envelope_from="a@example.com> BODY=8BITMIME")


class Ssrf(OnOneServer):
    """Nobody reaches through us what they cannot reach themselves."""

    INSIDE = ("http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "http://[::ffff:169.254.169.254]/", "http://2852039166/", "http://0xa9.0xfe.0xa9.0xfe/",
              "http://169.254.169.254.:80/", "http://[fd00::1]/")

    def test_by_the_address_of_an_attachment(self):
        for url in (*self.INSIDE, "file:///etc/passwd", "ftp://example.com/a", "/etc/passwd"):
            self.refuse(attachments=[url])
            self.refuse(attachments=[{"uri": url, "name": "a"}])

    def test_by_an_attachment_that_redirects(self):
        for inside in self.INSIDE[:3] + ("file:///etc/passwd",):
            with Receiver(otherwise=302, location=inside) as files:
                shown = self.server.wait_for(self.server.submit(attachments=[files.url]), seconds=10)
                self.assertEqual(shown["status"], "INVALID", shown["reason"])
                self.assertEqual(len(files.calls), 1)

    def test_by_a_callback(self):
        for url in (*self.INSIDE, "file:///etc/passwd", "nonsense"):
            self.refuse("callback_url", callback_url=url)

    def test_by_a_callback_over_submission(self):
        with smtplib.SMTP("127.0.0.1", self.server.submission) as client:
            for url in (*self.INSIDE, "file:///etc/passwd", "nonsense"):
                client.ehlo()
                client.mail("a@example.com")
                client.rcpt("b@example.org")
                code, reply = client.data(f"X-Outbox-Callback: {url}\r\nFrom: a@example.com\r\nSubject: x\r\n\r\nx\r\n")
                self.assertEqual(code, 554, url)
                self.assertIn(b"X-Outbox-Callback: ", reply)


class Folder(unittest.TestCase):
    """Payloads and messages as files, beside a program that has statements of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.files = os.path.join(folder.name, "files")
        self.outside = os.path.join(folder.name, "outside")
        os.mkdir(self.files)
        with open(self.outside, "w") as file:
            file.write("secret of somebody else")
        self.server = OutboxServer("--outbox-folder", self.files)
        self.addCleanup(self.server.__exit__)
        self.server.__enter__()

    def write(self, name, content):
        with open(os.path.join(self.files, name), "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return os.path.join(self.files, name)

    def insert(self, identifier, status, **paths):
        """As the other program does it."""
        if ON == "mysql":
            self.server.query("INSERT INTO emails (id, status, eml_file_path, payload_file_path, reason) VALUES (%s, %s, %s, %s, '')",
                              identifier, status, paths.get("EmlFilePath", ""), paths.get("PayloadFilePath", ""))
            self.server.query("INSERT INTO email_statuses (email_id, status, reason) VALUES (%s, %s, '')", identifier, status)
            return
        attributes = {"UpdatedAt": {"S": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}, "Reason": {"S": ""}, **{name: {"S": path} for name, path in paths.items()}}
        insert = """INSERT INTO "tabella-outbox" VALUE {'Id': ?, 'Status': ?, 'Attributes': ?}"""
        self.server.tables().execute_transaction(TransactStatements=[
            {"Statement": insert, "Parameters": [{"S": identifier}, {"S": "_META"}, {"M": {**attributes, "Latest": {"S": status}}}]},
            {"Statement": insert, "Parameters": [{"S": identifier}, {"S": status}, {"M": attributes}]}])

    def latest(self, status):
        """Emails in a state, as the other program reads them: path of the .eml by id."""
        if ON == "mysql":
            return dict(self.server.query("SELECT id, eml_file_path FROM emails WHERE status = %s ORDER BY updated_at ASC LIMIT 25 FOR UPDATE SKIP LOCKED", status))
        rows = self.server.tables().execute_statement(Statement="""SELECT Id, Status, Attributes, TTL FROM "tabella-outbox"."StatusIndex" WHERE Status=? AND Attributes.Latest =?""",
                                                      Parameters=[{"S": "_META"}, {"S": status}])["Items"]
        return {row["Id"]["S"]: row["Attributes"]["M"].get("EmlFilePath", {}).get("S") for row in rows}

    def test_an_email_of_another_program_is_taken_in_and_sent(self):
        identifier = str(uuid.uuid4())
        self.write("bill.txt", "17 euros")
        payload = self.write("payload.json", simple_email(id=identifier, subject="foreign", attachments=[{"path": "bill.txt", "name": "bill"}]))
        self.insert(identifier, "ACCEPTED", PayloadFilePath=payload)
        wait_until(lambda: self.server.request("GET", f"/outbox/emails/{identifier}")[0].status == 200)
        shown = self.server.wait_for(identifier, "SENT")
        self.assertEqual(shown["message"]["door"], "table")
        eml = os.path.join(os.path.realpath(self.files), identifier + ".eml")
        self.assertEqual(self.latest("SENT"), {identifier: eml})
        with open(eml, "rb") as file:
            message = parsed(file.read())
        self.assertEqual(message["Subject"], "foreign")
        text, attached = message.iter_parts()
        self.assertEqual((attached.get_filename(), attached.get_payload(decode=True)), ("bill", b"17 euros"))
        self.assertEqual(len(self.server.captured("subject:foreign")), 1)

    def test_a_callback_that_may_not_be_called_makes_a_payload_invalid(self):
        identifier = str(uuid.uuid4())
        payload = self.write("payload.json", simple_email(id=identifier, callback_url="http://169.254.169.254/latest"))
        self.insert(identifier, "ACCEPTED", PayloadFilePath=payload)
        wait_until(lambda: self.server.request("GET", f"/outbox/emails/{identifier}")[0].status == 200)
        self.assertIn("callback_url", self.server.wait_for(identifier)["reason"])
        self.assertEqual(self.server.status(identifier), "INVALID")
        self.assertEqual(self.server.captured(), [])

    def test_a_message_that_another_program_composed_is_sent(self):
        identifier = str(uuid.uuid4())
        eml = self.write("composed.eml", "From: a@example.com\nTo: b@example.org\nSubject: composed elsewhere\n\nx\n")
        self.insert(identifier, "READY", EmlFilePath=eml)
        wait_until(lambda: len(self.server.captured('subject:"composed elsewhere"')) == 1)
        self.server.wait_for(identifier, "SENT")
        self.assertIn(identifier, self.latest("SENT"))

    def test_a_second_post_of_the_same_id_leaves_its_files_as_they_are(self):
        identifier = str(uuid.uuid4())
        self.server.submit(id=identifier, subject="the first")
        self.server.wait_for(identifier, "SENT")
        kept = {}
        for name in (identifier + ".json", identifier + ".eml"):
            with open(os.path.join(self.files, name), "rb") as file:
                kept[name] = file.read()
        self.assertEqual(json.loads(kept[identifier + ".json"])["subject"], "the first")
        self.assertEqual(self.server.post(simple_email(id=identifier, subject="the second"), expect=422)["results"][0]["status"], "DUPLICATE")
        for name, content in kept.items():
            with open(os.path.join(self.files, name), "rb") as file:
                self.assertEqual(file.read(), content)
        self.assertEqual(sorted(os.listdir(self.files)), sorted(kept))

    def test_path_traversal_by_an_attachment(self):
        os.symlink(self.outside, os.path.join(self.files, "link"))
        os.symlink("..", os.path.join(self.files, "up"))
        for path in ("../outside", self.outside, "/etc/passwd", "link", "up/outside", "./../outside", "files/../../outside", ".", "nowhere"):
            with self.subTest(path=path):
                shown = self.server.wait_for(self.server.submit(attachments=[{"path": path, "name": "a"}]))
                self.assertEqual(shown["status"], "INVALID")
                self.assertNotIn("secret", shown["reason"])
        self.assertEqual(self.server.captured(), [])

    def test_path_traversal_by_an_id(self):
        for identifier in ("../outside", "..", ".hidden", "a/b", "/etc/passwd", "a\\b", "a\0b", 37 * "a", "ü", "a b"):
            result = self.server.post(simple_email(id=identifier), expect=422)["results"][0]
            self.assertEqual(result["status"], "REJECTED", identifier)
        for path in ("..%2Foutside", "%2Fetc%2Fpasswd"):
            self.server.call("GET", f"/outbox/emails/{path}/raw", expect=404)
        self.assertEqual(os.listdir(self.files), [])

    def test_path_traversal_by_a_row_of_the_table(self):
        with open(self.outside, "w") as file:
            json.dump(simple_email(subject="outside"), file)
        for path in (self.outside, "../outside", "/etc/passwd"):
            identifier = str(uuid.uuid4())
            self.insert(identifier, "ACCEPTED", PayloadFilePath=path)
            self.assertIn("outside", self.server.wait_for(identifier, "INVALID")["reason"])
        identifier = str(uuid.uuid4())
        self.insert(identifier, "READY", EmlFilePath=self.outside)
        time.sleep(2)
        self.assertNotEqual(self.server.status(identifier), "SENT")
        self.assertEqual(self.server.captured(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
