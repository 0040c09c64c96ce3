"""Calls and texts by Twilio, and by any other service over HTTP: what is asked of them, what they say, and all that goes wrong between."""

import http.server
import itertools
import json
import os
import re
import tempfile
import threading
import time
import unittest
import urllib.parse

from fake_twilio import EVENTS, MOST_BODY, MOST_TWIML, FakeTwilio, sign
from manhunt_server import ManhuntServer, wait_until

FROM = "+15550100"
REPLIES_KEY = "a key of the gateway's own"
PATIENCE = 90  # for an answer that never comes: the product waits for it, then tries again
HOSTILE = """<Hangup/> & "quotes" ]]> </Say></Response> 'single' \\ {{summary}} {{{x}}} &amp; &#60; %0A ünï 漢字 🔥"""


class Gateway:
    """A service for texts and calls with an API of its own; it keeps what it is sent, and answers as it is told."""

    def __init__(self):
        self.calls, self.answers = [], []
        gateway = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                gateway.calls.append(({name.lower(): value for name, value in self.headers.items()}, json.loads(body)))
                status = gateway.answers.pop(0) if gateway.answers else 200
                taken = {"message": {"id": f"g-{len(gateway.calls)}"}}
                answer = json.dumps(status if isinstance(status, dict) else taken if status == 200 else {"error": "no"}).encode()
                self.send_response(200 if isinstance(status, dict) else status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/send"

    def to(self, number):
        return [body for _, body in self.calls if body["to"] == number]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def twilio_provider(twilio, **more):
    return {"name": "twilio", "type": "twilio", "channels": ["phone", "text"], "url": twilio.url, "account": twilio.account,
            "token": twilio.token, "from": FROM, **more}


def gateway_provider(gateway):
    return {"name": "other", "type": "http", "channels": ["text", "phone"], "secret": "s3cret",
            "request": {"method": "POST", "url": gateway.url, "headers": {"Content-Type": "application/json", "Authorization": "Bearer {{secret}}"},
                        "body": '{"to":"{{destination}}","text":"{{text}}","id":"{{id}}","answer":"{{answer_url}}"}'},
            "reply": {"reference": "{{message.id}}", "error": "{{error}}"}, "replies": {"key": REPLIES_KEY, "from": "{{sender}}", "text": "{{message.body}}"}}


class Manhunt(unittest.TestCase):
    """A server with Twilio, and with the other service if `with_gateway`; a domain and a number for each test."""
    with_gateway = True
    numbers = itertools.count()

    @classmethod
    def setUpClass(cls):
        cls.twilio = cls.enterClassContext(FakeTwilio(senders=(FROM,)))
        cls.gateway = cls.enterClassContext(Gateway())
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="tabella-test-"))
        file = os.path.join(folder, "providers.json")
        with open(file, "w") as providers:
            json.dump({"providers": [twilio_provider(cls.twilio), *([gateway_provider(cls.gateway)] * cls.with_gateway)]}, providers)
        server = ManhuntServer("--manhunt-providers", file)
        cls.base = f"http://127.0.0.1:{server.http}"
        server.options += ["--manhunt-url", cls.base]
        cls.server = cls.enterClassContext(server)
        cls.twilio.text_url = cls.base + "/manhunt/callbacks/twilio/text"

    def setUp(self):
        self.number = self.new_number()
        self.domain, self.searches = f"domain{self.number[1:]}", []
        self.server.call("PUT", f"/manhunt/{self.domain}", {"title": "Shop", "language": "en"})

    def tearDown(self):
        for search in self.searches:
            self.cancel(search)
        self.twilio.down = False
        self.twilio.port_in_signature = True
        self.addCleanup(self.twilio.clear)
        self.gateway.calls.clear()
        self.gateway.answers.clear()
        self.twilio.check()

    def new_number(self):
        return f"+39021{next(Manhunt.numbers):06}"

    def contact(self, *types, number=None, name="Ann", **more):
        methods = [{"type": kind, "destination": number or self.number, "delay": "0s", "enabled": True} for kind in types]
        return self.server.call("POST", f"/manhunt/{self.domain}/contacts", {"name": name, "methods": methods, **more}, 201)["id"]

    def search(self, contact, summary="Disk full", **more):
        search = self.server.call("POST", f"/manhunt/{self.domain}/searches", {"contact": contact, "metadata": {"summary": summary}, **more}, 201)["id"]
        self.searches.append(search)
        return search

    def look_for(self, kind, summary="Disk full", number=None, **more):
        """A search for somebody new, who has that one way to be reached."""
        return self.search(self.contact(kind, number=number), summary, **more)

    def cancel(self, search):
        self.server.request("POST", f"/manhunt/{self.domain}/searches/{search}/cancel", json.dumps({"reason": "solved"}))

    def get(self, search):
        return self.server.call("GET", f"/manhunt/{self.domain}/searches/{search}")

    def status(self, search):
        return self.get(search)["status"]

    def attempt(self, search, number=0):
        return self.get(search)["attempts"][number]

    def finished(self, search, seconds=20):
        """Its only attempt, when it is done with."""
        wait_until(lambda: self.get(search)["attempts"] and self.attempt(search)["state"] != "sending", seconds)
        return self.attempt(search)

    def tries(self, attempt):
        return [(one["provider"], one["outcome"]) for one in attempt["tries"]]

    def calls(self):
        return [call for call in self.twilio.calls if call.to == self.number]

    def messages(self):
        return [message for message in self.twilio.messages if message.to == self.number]

    def the_call(self):
        wait_until(self.calls, 20)
        return self.calls()[0]

    def the_message(self):
        wait_until(self.messages, 20)
        return self.messages()[0]

    def becomes(self, search, status, seconds=20):
        wait_until(lambda: self.status(search) == status, seconds)
        return self.get(search)

    def stays(self, search, status="active"):
        time.sleep(0.3)
        self.assertEqual(self.status(search), status)


class Calls(Manhunt):
    def test_who_presses_one_is_found(self):
        search = self.look_for("phone", "Disk full on db1")
        call = self.the_call()
        self.assertEqual(call.sender, FROM)
        self.assertIn("Disk full on db1", call.said)
        attempt = self.finished(search)
        self.assertEqual(attempt["state"], "sent")
        self.assertEqual(self.tries(attempt), [("twilio", "sent")])
        self.assertEqual(attempt["tries"][0]["reference"], call.sid)
        call.ring()
        call.answer()
        self.stays(search)
        self.assertTrue(call.press("1").said)
        found = self.becomes(search, "successful")
        call.hang_up()
        self.assertEqual((found["resolution"]["how"], found["resolution"]["attempt"]), ("phone", attempt["id"]))
        response = self.attempt(search)["response"]
        self.assertEqual((response["answer"], response["how"]), ("accept", "phone"))
        self.assertEqual(len(self.calls()), 1)

    def test_what_is_asked_of_twilio(self):
        search = self.look_for("phone")
        call = self.the_call()
        request = next(one for one in self.twilio.requests if one.form.get("To") == [self.number])
        self.assertEqual(request.path, f"/2010-04-01/Accounts/{self.twilio.account}/Calls.json")
        self.assertEqual(sorted(request.form["StatusCallbackEvent"]), sorted(EVENTS))
        self.assertEqual(request.form["StatusCallbackMethod"], ["POST"])
        self.assertNotIn("Url", request.form)  # both: the TwiML is ignored
        self.assertTrue(5 <= int(request.form["Timeout"][0]) <= 600)
        gather = call.document.gather
        self.assertEqual((gather.get("numDigits"), gather.get("method", "POST")), ("1", "POST"))
        for url, what in ((gather.get("action"), "call"), (call.form["StatusCallback"], "status")):
            parts = urllib.parse.urlsplit(url)
            self.assertEqual(f"{parts.scheme}://{parts.netloc}{parts.path}", f"{self.base}/manhunt/callbacks/twilio/{what}")
            self.assertEqual(urllib.parse.parse_qs(parts.query), {"search": [search], "attempt": [self.attempt(search)["id"]]})

    def test_who_presses_two_declines(self):
        search = self.look_for("phone")
        self.assertTrue(self.the_call().press("2").said)
        wait_until(lambda: self.attempt(search).get("response"), 20)
        self.assertEqual(self.attempt(search)["response"]["answer"], "decline")
        self.assertNotEqual(self.status(search), "successful")

    def test_who_declines_leaves_it_to_the_next_one(self):
        ann, bob = self.contact("phone"), self.contact("phone", number="+390555" + self.number[-4:], name="Bob")
        steps = [{"wait": "1h", "targets": [{"contact": ann}, {"contact": bob}]}]
        self.server.call("PUT", f"/manhunt/{self.domain}/policies/both", {"title": "Both", "steps": steps})
        body = {"policy": "both", "metadata": {"summary": "Disk full"}}
        search = self.server.call("POST", f"/manhunt/{self.domain}/searches", body, 201)["id"]
        self.searches.append(search)
        wait_until(lambda: len([call for call in self.twilio.calls if call.to[-4:] == self.number[-4:]]) == 2, 20)
        to_ann, to_bob = sorted((call for call in self.twilio.calls if call.to[-4:] == self.number[-4:]), key=lambda call: call.to != self.number)
        to_ann.press("2")
        self.stays(search)
        to_bob.press("1")
        self.becomes(search, "successful")

    def test_another_digit_decides_nothing(self):
        search = self.look_for("phone")
        call = self.the_call()
        for digit in ("7", "#", "0"):
            if call.document.gather is None:
                break
            call.press(digit)
            self.stays(search)
        self.assertNotIn("response", {name for name, value in self.attempt(search).items() if value})

    def test_who_presses_nothing_is_asked_no_more_than_that(self):
        search = self.look_for("phone")
        call = self.the_call()
        call.press("")
        call.hang_up()
        self.stays(search)
        self.assertNotIn("Digits", json.dumps([post.form for post in self.twilio.posts if post.form.get("CallSid") == [call.sid]]))

    def test_the_first_answer_counts(self):
        search = self.look_for("phone")
        call = self.the_call()
        self.finished(search)
        call.press("1")
        self.becomes(search, "successful")
        pressed = self.twilio.posts[-1]
        before = self.get(search)
        self.assertTrue(self.twilio.again(pressed).body)  # Twilio got no answer in time, it thinks
        form = {**pressed.form, "Digits": ["2"]}
        self.twilio.post(pressed.url, form)
        self.assertEqual(self.get(search), before)

    def test_who_answers_too_late_is_told(self):
        search = self.look_for("phone")
        call = self.the_call()
        self.cancel(search)
        self.assertTrue(call.press("1").said)
        self.stays(search, "canceled")

    def test_what_becomes_of_the_call_is_kept(self):
        for end in ("completed", "busy", "no-answer", "failed", "canceled"):
            with self.subTest(end):
                self.number = self.new_number()
                search = self.look_for("phone")
                call = self.the_call()
                call.ring()
                wait_until(lambda: self.attempt(search).get("progress") == "ringing", 20)
                if end == "completed":
                    call.answer()
                    wait_until(lambda: self.attempt(search).get("progress") in ("answered", "in-progress"), 20)
                call.complete(end)
                # A call that failed leaves the attempt to the next provider, whose progress is its own.
                came_to = None if end == "failed" else end
                wait_until(lambda: self.attempt(search).get("progress") == came_to, 20)
                # They may come late, and again: what the call came to stays.
                ringing = next(post for post in self.twilio.posts if post.form["CallSid"] == [call.sid] and post.form["CallStatus"] == ["ringing"])
                self.twilio.again(ringing)
                self.stays(search)
                self.assertEqual(self.attempt(search).get("progress"), came_to)
                if end == "failed":
                    self.assertEqual(self.attempt(search)["tries"][0]["detail"], "failed")

    def test_callbacks_for_what_is_not_there(self):
        search = self.look_for("phone")
        call = self.the_call()
        attempt = self.attempt(search)["id"]
        for query in (f"search=s{25 * '0'}&attempt={attempt}", f"search={search}&attempt=a09.09.09.09", f"search={search}&attempt=x", f"search={search}",
                      "", "search=&attempt=", f"search=%00&attempt={attempt}", "search=" + 3000 * "x"):
            for what in ("call", "status"):
                with self.subTest(what + query[:60]):
                    url = f"{self.base}/manhunt/callbacks/twilio/{what}?{query}"
                    self.assertLess(self.twilio.post(url, call.parameters(Digits="1"), expect=None).status, 500)
        self.twilio.post(f"{self.base}/manhunt/callbacks/nobody/call?search={search}&attempt={attempt}", call.parameters(Digits="1"), expect=404)
        self.stays(search)


class Signatures(Manhunt):
    def test_who_is_not_twilio_changes_nothing(self):
        search, text = self.look_for("phone"), self.look_for("text")
        call, message = self.the_call(), self.the_message()
        self.finished(search)
        self.finished(text)
        before = self.get(search), self.get(text)
        action, form = call.document.gather.get("action"), call.parameters(Digits="1")
        lists = {name: [value] for name, value in form.items()}
        right = sign(self.twilio.token, action, lists)
        wrong = [None, "", "wrong", right[:-1], right + "=", right.lower(), right.swapcase(), sign("another token", action, lists), sign("", action, lists),
                 sign(self.twilio.token, action + "&x=1", lists), sign(self.twilio.token, action, {**lists, "Digits": ["2"]}),
                 sign(self.twilio.token, action, {}), sign(self.twilio.token, call.form["StatusCallback"], lists)]
        for signature in wrong:
            with self.subTest(signature):
                self.twilio.post(action, form, expect=403, signature=signature)
                call.ring(expect=403, signature=signature)
                call.complete("busy", expect=403, signature=signature)
                message.report("failed", 30003, expect=403, signature=signature)
                self.twilio.reply(message, "1", expect=403, signature=signature)
        time.sleep(0.3)
        self.assertEqual((self.get(search), self.get(text)), before)
        call.status = "ringing"
        call.press("1")
        self.becomes(search, "successful")

    def test_it_covers_every_parameter(self):
        search = self.look_for("phone")
        call = self.the_call()
        action, form = call.document.gather.get("action"), call.parameters(Digits="1")
        signature = sign(self.twilio.token, action, {name: [value] for name, value in form.items()})
        self.twilio.post(action, {**form, "Extra": "1"}, expect=403, signature=signature)
        self.twilio.post(action, {**form, "Extra": ""}, expect=403, signature=signature)
        self.twilio.post(action, {name: value for name, value in form.items() if name != "CalledZip"}, expect=403, signature=signature)
        self.twilio.post(action, {**form, "Digits": ["1", "2"]}, expect=403, signature=signature)
        self.twilio.post(action.replace(search, search[:-1] + ("0" if search[-1] != "0" else "1")), form, expect=403, signature=signature)
        self.stays(search)
        # Parameters that nobody knew of are Twilio's right; of those that come twice each value counts once, sorted.
        self.twilio.post(action, {**form, "Ünï": "漢字 +&=%", "Twice": ["b", "a", "a"], "digits": "2", "Empty": ""})
        self.becomes(search, "successful")

    def test_without_the_port_as_well(self):
        # Twilio signs some of its requests so; its own libraries take both.
        self.twilio.port_in_signature = False
        search = self.look_for("phone")
        self.the_call().press("1")
        self.becomes(search, "successful")


class Texts(Manhunt):
    def test_who_answers_is_found(self):
        for answer, status in (("1", "accept"), (" Yes\n", "accept"), ("OK", "accept"), ("2", "decline"), ("No", "decline"), ("hm?", None)):
            with self.subTest(answer):
                self.number = self.new_number()
                search = self.look_for("text", "Disk full on db1")
                message = self.the_message()
                self.assertEqual(message.sender, FROM)
                self.assertIn("Disk full on db1", message.body)
                attempt = self.finished(search)
                self.assertEqual((self.tries(attempt), attempt["tries"][0]["reference"]), ([("twilio", "sent")], message.sid))
                said = self.twilio.reply(message, answer).messages
                if status == "accept":
                    found = self.becomes(search, "successful")
                    self.assertEqual((found["resolution"]["how"], found["resolution"]["attempt"]), ("text", attempt["id"]))
                    self.assertEqual(len(said), 1)
                elif status == "decline":
                    wait_until(lambda: self.attempt(search).get("response"), 20)
                    self.assertEqual(self.attempt(search)["response"]["answer"], "decline")
                else:
                    self.stays(search)

    def test_what_becomes_of_the_text_is_kept(self):
        search = self.look_for("text")
        message = self.the_message()
        self.finished(search)
        for status, error in (("sent", None), ("delivered", None)):
            message.report(status, error)
            wait_until(lambda: self.attempt(search).get("progress") == status, 20)
        self.twilio.again(next(post for post in self.twilio.posts if post.form.get("MessageStatus") == ["sent"]))
        time.sleep(0.3)
        self.assertEqual(self.attempt(search)["progress"], "delivered")

    def test_a_code_says_which(self):
        contact = self.contact("text")
        self.server.call("PUT", f"/manhunt/{self.domain}/templates/text/en", {"subject": "", "text": "{{summary}}: reply 1 {{code}}"})
        older = self.search(contact, "older")
        wait_until(lambda: len(self.messages()) == 1, 20)
        newer = self.search(contact, "newer")
        wait_until(lambda: len(self.messages()) == 2, 20)
        codes = {message.body.split(":")[0]: re.search(r"reply 1 (\w+)", message.body)[1] for message in self.messages()}
        self.assertEqual(len(set(codes.values())), 2)
        message = self.messages()[0]
        unknown = next(code for code in ("ZZZZ", "QQQQ", "7777") if code not in codes.values())
        self.twilio.reply(message, f"1 {unknown}")
        self.stays(older)
        self.stays(newer)
        # Nobody else's number answers for it.
        self.twilio.text("+390000001", f"1 {codes['older']}")
        self.stays(older)
        self.twilio.reply(message, f" 1  {codes['older'].lower()} ")
        self.becomes(older, "successful")
        self.stays(newer)
        self.twilio.reply(message, "1")
        self.becomes(newer, "successful")

    def test_without_a_code_it_is_the_latest(self):
        contact = self.contact("text")
        older = self.search(contact, "older")
        wait_until(lambda: len(self.messages()) == 1, 20)
        newer = self.search(contact, "newer")
        wait_until(lambda: len(self.messages()) == 2, 20)
        self.finished(newer)
        self.twilio.reply(self.messages()[0], "1")
        self.becomes(newer, "successful")
        self.stays(older)

    def test_without_a_code_nobody_answers_for_two_houses_at_once(self):
        here = self.look_for("text", "Disk full")
        wait_until(lambda: len(self.messages()) == 1, 20)
        before, self.domain = self.domain, f"other{self.number[1:]}"
        there = self.look_for("text", "Parcel at the door")
        wait_until(lambda: len(self.messages()) == 2, 20)
        said = self.twilio.reply(self.messages()[0], "1").messages
        self.stays(there)
        for words in ("Disk full", "Parcel at the door"):
            self.assertIn(words, str(said))
        code = re.search(r"1 (\w+), 2 \w+: Parcel", str(said))[1]
        self.twilio.reply(self.messages()[0], f"1 {code}")
        self.becomes(there, "successful")
        self.domain = before
        self.stays(here)
        # The latest of all is over: the one that is left may not be what is meant.
        self.assertIn("Disk full", str(self.twilio.reply(self.messages()[0], "1").messages))
        self.stays(here)

    def test_what_answers_everything_is_not_told_forever_how_to(self):
        before = self.domain
        self.look_for("text", "Disk full")
        self.domain = f"other{self.number[1:]}"
        self.look_for("text", "Parcel at the door")
        self.domain = before
        wait_until(lambda: len(self.messages()) == 2, 20)
        told = [bool(self.twilio.text(self.number, "1").messages) for _ in range(10)]
        self.assertTrue(all(told[:3]))
        self.assertLessEqual(sum(told), 6)  # three in a quarter of an hour, and one may begin meanwhile

    def test_texts_from_strangers(self):
        search = self.look_for("text")
        self.the_message()
        for sender, text in (("+390000002", "1"), ("+390000002", ""), ("", "1"), (self.number[:-1], "1"), (self.number + "0", "1"), ("1'; --", HOSTILE)):
            self.assertLessEqual(len(self.twilio.text(sender, text).messages), 1)
        self.stays(search)

    def test_texts_that_say_nothing_we_know(self):
        search = self.look_for("text")
        message = self.the_message()
        for text in ("", " ", "1 1 1 1", "11", "1" + 1599 * "1", HOSTILE, "\0"):
            self.twilio.reply(message, text)
            self.assertEqual(self.status(search), "active", text)

    def test_the_same_text_twice(self):
        search = self.look_for("text")
        message = self.the_message()
        self.twilio.reply(message, "1")
        before = self.becomes(search, "successful")
        self.twilio.again(self.twilio.posts[-1])
        self.assertEqual(self.get(search), before)

    def test_who_told_twilio_to_stop_is_reached_otherwise(self):
        self.twilio.stopped.add(self.number)
        search = self.look_for("text")
        attempt = self.finished(search)
        self.assertEqual(self.tries(attempt), [("twilio", "failed"), ("other", "sent")])
        self.assertIn("21610", attempt["tries"][0]["detail"])


class Content(Manhunt):
    """What is said reaches whoever it is for as it is, and nothing of it is taken for an instruction."""

    def test_what_looks_like_markup_is_said(self):
        for kind in ("phone", "text"):
            self.server.call("PUT", f"/manhunt/{self.domain}/templates/{kind}/en", {"subject": "", "text": "{{summary}}"})
        search = self.look_for("phone", HOSTILE)
        call = self.the_call()
        self.assertIn(HOSTILE, call.said)
        self.assertFalse(list(call.document.root.iter("Hangup")))
        self.assertIn("&lt;Hangup/&gt;", call.twiml)
        call.press("1")
        self.becomes(search, "successful")
        self.look_for("text", HOSTILE)
        self.assertIn(HOSTILE, self.the_message().body)

    def test_it_is_text_in_json_too(self):
        self.server.call("PUT", f"/manhunt/{self.domain}/templates/text/en", {"subject": "", "text": "{{summary}}"})
        self.twilio.fail_next(1, 400, 21211)
        self.look_for("text", HOSTILE + "\n\t\x01\u2028 line")
        wait_until(lambda: self.gateway.to(self.number), 20)
        said = self.gateway.to(self.number)[0]["text"]
        self.assertIn(HOSTILE, said)
        self.assertIn("line", said)

    def test_names_are_text_too(self):
        self.server.call("PUT", f"/manhunt/{self.domain}", {"title": "A & B <Say>"})
        self.server.call("PUT", f"/manhunt/{self.domain}/templates/phone/en", {"subject": "", "text": "{{contact.name}} of {{domain.title}}: {{summary}}"})
        self.search(self.contact("phone", name='<Dial>"Ann" & Co</Dial>'), "x")
        self.assertIn('<Dial>"Ann" & Co</Dial> of A & B <Say>: x', self.the_call().said)

    def test_templates_cannot_leave_the_text(self):
        self.server.call("PUT", f"/manhunt/{self.domain}/templates/phone/en", {"subject": "", "text": "</Say><Hangup/> {{{summary}}}"})
        self.look_for("phone", "<Dial>+1900</Dial>")
        self.assertIn("</Say><Hangup/> <Dial>+1900</Dial>", self.the_call().said)

    def test_what_xml_has_no_characters_for(self):
        search = self.look_for("phone", "Disk\x01 \x0b\x1b[31mfull\ufffe\uffff \x7f on db1")
        call = self.the_call()
        self.assertRegex(call.said, r"Disk.*full.*on db1")
        call.press("1")
        self.becomes(search, "successful")

    def test_a_novel(self):
        for summary in (8000 * "x", 2000 * "<&>\"", 3000 * "漢", 3000 * "🔥", 2000 * "e\u0301", 700 * "word & word "):
            with self.subTest(summary[:4]):
                self.number = self.new_number()
                spoken = self.look_for("phone", summary)
                call = self.the_call()
                self.assertLessEqual(len(call.twiml), MOST_TWIML)
                self.assertIn(summary[:100], call.said)
                self.assertEqual(self.tries(self.finished(spoken)), [("twilio", "sent")])
                written = self.look_for("text", summary)
                message = self.the_message()
                self.assertLessEqual(len(message.body), MOST_BODY)
                self.assertIn(summary[:100], message.body)
                self.assertEqual(self.tries(self.finished(written)), [("twilio", "sent")])
                call.press("1")  # what was cut off is not what it takes to answer
                self.becomes(spoken, "successful")

    def test_nothing_to_say(self):
        for kind in ("phone", "text"):
            self.server.call("PUT", f"/manhunt/{self.domain}/templates/{kind}/en", {"subject": "", "text": "{{nothing}}"})
        contact = self.contact("phone", "text")
        body = {"contact": contact, "metadata": {}}
        self.searches.append(self.server.call("POST", f"/manhunt/{self.domain}/searches", body, 201)["id"])
        self.assertTrue(self.the_call().said)
        self.assertTrue(self.the_message().body.strip())


class Failover(Manhunt):
    def delivered_elsewhere(self, search, *before, detail=""):
        """By the other service, after those tries."""
        attempt = self.finished(search, PATIENCE)
        self.assertEqual(self.tries(attempt), [*before, ("other", "sent")])
        self.assertEqual(attempt["state"], "sent")
        self.assertRegex(attempt["tries"][-1]["reference"], r"^g-\d+$")
        self.assertIn(detail, attempt["tries"][0].get("detail", ""))
        self.assertEqual(len(self.gateway.to(attempt["destination"])), 1)
        return attempt

    def test_a_number_that_twilio_does_not_call(self):
        # One for each, as their numbers are the same for all tests.
        for kind, code in (("phone", "21217"), ("text", "21211")):
            self.gateway.calls.clear()
            self.delivered_elsewhere(self.look_for(kind, number="+15005550001"), ("twilio", "failed"), detail=code)

    def test_what_the_other_service_is_sent(self):
        self.twilio.fail_next(2, 400, 21211)
        searches = [self.look_for("text", "one"), self.look_for("text", "two")]
        attempts = [self.finished(search) for search in searches]
        wait_until(lambda: len(self.gateway.to(self.number)) == 2, 20)
        keys = set()
        for headers, body in self.gateway.calls:
            self.assertEqual(headers["authorization"], "Bearer s3cret")
            self.assertEqual(headers["content-type"], "application/json")
            self.assertIn(attempts[0]["id"], headers["idempotency-key"])
            keys.add(headers["idempotency-key"])
        self.assertEqual(len(keys), 2)  # ids of attempts are the same in all searches
        self.assertEqual(sum("one" in body["text"] for body in self.gateway.to(self.number)), 1)
        self.assertNotIn("s3cret", json.dumps([self.get(search) for search in searches]))

    def test_the_other_service_gets_the_same_key_again(self):
        self.twilio.fail_next(1, 400, 21211)
        self.gateway.answers = [500]
        attempt = self.finished(self.look_for("text"), PATIENCE)
        self.assertEqual(self.tries(attempt), [("twilio", "failed"), ("other", "unknown"), ("other", "sent")])
        self.assertEqual(len({headers["idempotency-key"] for headers, _ in self.gateway.calls}), 1)

    def test_refusals_of_any_kind(self):
        for status, code in ((400, 21210), (401, 20003), (403, 20403), (404, 20404)):
            with self.subTest(status):
                self.gateway.calls.clear()
                self.twilio.fail_next(1, status, code)
                self.delivered_elsewhere(self.look_for("phone"), ("twilio", "failed"), detail=str(code))

    def test_too_many_requests(self):
        self.twilio.rate_limit(1, retry_after=600)
        began = time.monotonic()
        attempt = self.delivered_elsewhere(self.look_for("text"), ("twilio", "failed"), detail="429")
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual(self.messages(), [])
        self.assertEqual(len(attempt["tries"]), 2)

    def test_nobody_knows_and_it_is_tried_again(self):
        for status in (500, 502, 503, 504):
            with self.subTest(status):
                self.twilio.fail_next(1, status, 20500)
                attempt = self.finished(self.look_for("phone"), PATIENCE)
                self.assertEqual(self.tries(attempt), [("twilio", "unknown"), ("twilio", "sent")])
                self.assertEqual(attempt["state"], "sent")
                self.assertIn(str(status), attempt["tries"][0]["detail"])
        self.assertEqual(self.gateway.calls, [])

    def test_nobody_knows_twice(self):
        self.twilio.fail_next(2, 503, 20503)
        self.delivered_elsewhere(self.look_for("phone"), ("twilio", "unknown"), ("twilio", "unknown"))

    def test_a_call_that_was_made_unknown_to_us(self):
        self.twilio.drop_next(1)
        search = self.look_for("phone")
        attempt = self.finished(search, PATIENCE)
        self.assertEqual(self.tries(attempt), [("twilio", "unknown"), ("twilio", "sent")])
        first, second = self.calls()
        self.assertFalse(attempt["tries"][0].get("reference"))
        self.assertEqual(attempt["tries"][1]["reference"], second.sid)
        self.assertEqual(first.twiml, second.twiml)
        first.ring()
        first.press("1")  # whichever of them is answered
        self.becomes(search, "successful")

    def test_no_answer_at_all(self):
        self.twilio.hang_next(1)
        search = self.look_for("text")
        wait_until(lambda: any(one.form.get("To") == [self.number] for one in self.twilio.requests), 20)
        self.assertEqual(self.attempt(search)["state"], "sending")
        self.assertEqual(self.attempt(search)["tries"][0]["outcome"], "pending")  # written down before it was made
        attempt = self.finished(search, PATIENCE)
        self.assertEqual(self.tries(attempt), [("twilio", "unknown"), ("twilio", "sent")])
        self.assertTrue(attempt["tries"][0]["detail"])
        self.assertEqual(len(self.messages()), 1)

    def test_answers_that_come_while_nobody_knows(self):
        self.twilio.hang_next(1, does=True)
        search = self.look_for("phone")
        self.the_call().press("1")
        self.becomes(search, "successful")
        self.assertEqual(self.finished(search, PATIENCE)["response"]["answer"], "accept")
        self.assertEqual(len(self.calls()), 1)  # who was found is not called again

    def test_nobody_listens(self):
        self.twilio.down = True
        time.sleep(0.2)  # connections that were kept open are known to be closed
        self.delivered_elsewhere(self.look_for("phone"), ("twilio", "failed"))
        self.gateway.calls.clear()
        self.twilio.down = False
        attempt = self.finished(self.look_for("phone"))
        self.assertEqual(self.tries(attempt), [("twilio", "sent")])

    def test_nobody_takes_it(self):
        self.gateway.answers = [400]
        search = self.search(self.contact("text", "phone", number="+15005550009"))  # no texts go there
        wait_until(lambda: [attempt["state"] for attempt in self.get(search)["attempts"]] == ["failed", "sent"], 20)
        self.assertEqual(self.tries(self.attempt(search)), [("twilio", "failed"), ("other", "failed")])
        self.assertEqual(self.tries(self.attempt(search, 1)), [("twilio", "sent")])  # the next method has its turn
        self.assertEqual(self.status(search), "active")

    def test_what_was_taken_and_did_not_arrive_goes_to_the_next(self):
        for kind, end in (("phone", "failed"), ("text", "undelivered"), ("text", "failed")):
            with self.subTest(kind=kind, end=end):
                self.gateway.calls.clear()
                self.number = self.new_number()
                search = self.look_for(kind)
                taken = self.the_call() if kind == "phone" else self.the_message()
                self.finished(search)
                taken.complete(end) if kind == "phone" else taken.report(end, 30003)
                wait_until(lambda: len(self.attempt(search)["tries"]) == 2, 20)
                self.delivered_elsewhere(search, ("twilio", "failed"), detail=end)
                # Said again, it is of a try that is over.
                self.twilio.again(self.twilio.posts[-1])
                self.stays(search)
                self.assertEqual((len(self.gateway.to(self.number)), len(self.attempt(search)["tries"])), (1, 2))

    def test_who_is_busy_was_reached(self):
        for end in ("busy", "no-answer", "completed"):
            with self.subTest(end):
                self.number = self.new_number()
                search = self.look_for("phone")
                call = self.the_call()
                self.finished(search)
                call.complete(end)
                self.stays(search)
                self.assertEqual(self.tries(self.attempt(search)), [("twilio", "sent")])

    def reply(self, body, expect=200, kind="application/json", **headers):
        credentials = headers or {"Authorization": f"Bearer {REPLIES_KEY}"}
        response, content = self.server.request("POST", "/manhunt/callbacks/other/text", body, {"Content-Type": kind, **credentials})
        self.assertEqual(response.status, expect, content)
        return json.loads(content).get("reply")

    def test_the_other_service_hands_on_replies(self):
        self.twilio.down = True
        search = self.look_for("text")
        wait_until(lambda: self.gateway.to(self.number))
        self.assertIn("Thank you", self.reply(json.dumps({"sender": self.number, "message": {"body": "1"}})))
        self.assertEqual((self.status(search), self.get(search)["resolution"]["how"]), ("successful", "text"))
        self.assertEqual(self.reply(json.dumps({"sender": self.number, "message": {"body": "I am on holiday"}})), "", "a program that answers everything is not answered")

    def test_the_other_service_hands_on_what_was_pressed(self):
        self.twilio.down = True
        for digits, status in (("1", "successful"), ("2", "active")):
            with self.subTest(digits):
                self.number = self.new_number()
                search = self.look_for("phone")
                wait_until(lambda: self.gateway.to(self.number))
                path = self.gateway.to(self.number)[0]["answer"].removeprefix(self.base)
                key = {"Authorization": f"Bearer {REPLIES_KEY}"}
                press = lambda body, headers: self.server.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
                self.assertEqual(press({"message": {"body": digits}}, {})[0].status, 403)
                response, again = press({"message": {"body": "7"}}, key)
                self.assertIn("Disk full", json.loads(again)["say"])
                self.assertEqual(self.status(search), "active")
                response, content = press({"message": {"body": digits}}, key)
                self.assertEqual(response.status, 200, content)
                self.assertEqual(self.status(search), status)
                self.assertEqual(self.attempt(search)["response"]["answer"], "accept" if digits == "1" else "decline")
        self.assertEqual(self.server.request("POST", "/manhunt/callbacks/other/call?search=s0&attempt=a01.01.01.01", json.dumps({"message": {"body": "1"}}), key)[0].status, 404)

    def test_what_it_says_was_wrong_was_not_taken(self):
        self.twilio.down = True
        self.gateway.answers.append({"error": "no credit"})
        attempt = self.finished(self.look_for("text"))
        self.assertEqual((attempt["state"], attempt["tries"][-1]["provider"], attempt["tries"][-1]["detail"]), ("failed", "other", "no credit"))

    def test_replies_are_the_services_own(self):
        search = self.look_for("text")
        self.finished(search)
        body = json.dumps({"sender": self.number, "message": {"body": "1"}})
        for credentials in ({"Authorization": "Bearer wrong"}, {"Authorization": "Bearer "}, {"Authorization": "Basic x"}):
            self.reply(body, 403, **credentials)
        for body in ("", "[]", "{", json.dumps({"sender": self.number}), json.dumps({"message": {"body": "1"}})):
            self.reply(body, 400)
        self.reply("message.body=1", 400, "application/x-www-form-urlencoded")
        self.assertEqual(self.status(search), "active")

    def test_a_method_is_tried_out(self):
        contact = self.contact("text")
        method = self.server.call("GET", f"/manhunt/{self.domain}/contacts/{contact}")["methods"][0]["id"]
        path = f"/manhunt/{self.domain}/contacts/{contact}/methods/{method}/test"
        answer = self.server.call("POST", path)
        self.assertEqual((answer["outcome"], answer["provider"]), ("sent", "twilio"))
        self.assertEqual(len(self.messages()), 1)
        self.twilio.fail_next(1, 400, 21211)
        answer = self.server.call("POST", path)
        self.assertEqual((answer["outcome"], answer["provider"]), ("sent", "other"))

    def test_tokens_are_told_to_nobody(self):
        self.twilio.fail_next(1, 401, 20003, "Authenticate")
        search = self.look_for("phone")
        self.finished(search)
        self.assertNotIn(self.twilio.token, json.dumps(self.get(search)))


class Alone(Manhunt):
    """With nobody to turn to but Twilio."""
    with_gateway = False

    def came(self):
        return [request.at for request in self.twilio.requests if request.form.get("To") == [self.number]]

    def test_too_many_requests_are_made_again(self):
        self.twilio.rate_limit(2, retry_after=2)
        search = self.look_for("phone")
        wait_until(self.calls, PATIENCE)
        attempt = self.finished(search)
        self.assertEqual([outcome for _, outcome in self.tries(attempt)], ["failed", "failed", "sent"])
        first, second, third = self.came()
        self.assertGreaterEqual(min(second - first, third - second), 1.9)
        self.assertLess(third - first, 15)
        self.assertEqual(len(self.calls()), 1)

    def test_without_a_word_on_when(self):
        self.twilio.rate_limit(1)
        search = self.look_for("text")
        wait_until(self.messages, PATIENCE)
        self.assertEqual(self.finished(search)["state"], "sent")
        first, second = self.came()
        self.assertGreaterEqual(second - first, 0.5)

    def test_a_word_on_when_that_is_none(self):
        for retry_after in ("soon", "-5", "99999999999999999999", "9000000000000000000", "Fri, 31 Dec 1999 23:59:59 GMT"):
            with self.subTest(retry_after):
                self.twilio.rate_limit(1, retry_after=retry_after)
                search = self.look_for("text")
                wait_until(self.came, 20)
                time.sleep(0.5)
                self.assertEqual(self.status(search), "active")
                self.cancel(search)
                self.twilio.clear()

    def test_what_ended_meanwhile_is_not_tried_again(self):
        self.twilio.rate_limit(1, retry_after=3)
        search = self.look_for("phone")
        wait_until(self.came, 20)
        self.cancel(search)
        time.sleep(5)
        self.assertEqual((len(self.came()), self.calls()), (1, []))

    def test_nobody_knows_twice(self):
        self.twilio.fail_next(2, 500, 20500)
        attempt = self.finished(self.look_for("phone"), PATIENCE)
        self.assertEqual((attempt["state"], self.tries(attempt)), ("unknown", [("twilio", "unknown"), ("twilio", "unknown")]))

    def test_nobody_knows_after_it_had_enough_to_do(self):
        self.twilio.rate_limit(1, retry_after=2)
        search = self.look_for("phone")
        wait_until(self.came, 20)
        self.twilio.fail_next(1, 500, 20500)
        self.assertEqual([outcome for _, outcome in self.tries(self.finished(search, PATIENCE))], ["failed", "unknown", "sent"])

    def test_nobody_listens(self):
        self.twilio.down = True
        attempt = self.finished(self.look_for("phone"), PATIENCE)
        self.assertEqual(attempt["state"], "failed")
        self.assertEqual({one for one in self.tries(attempt)}, {("twilio", "failed")})

    def test_what_did_not_arrive_has_failed(self):
        search = self.look_for("text")
        message = self.the_message()
        self.finished(search)
        message.report("undelivered", 30003)
        wait_until(lambda: self.attempt(search)["state"] == "failed", 20)
        attempt = self.attempt(search)
        self.assertEqual((self.tries(attempt), attempt["detail"]), ([("twilio", "failed")], "undelivered"))

    def test_refused(self):
        attempt = self.finished(self.look_for("text", number="+15005550009"))
        self.assertEqual((attempt["state"], self.tries(attempt)), ("failed", [("twilio", "failed")]))
        self.assertIn("21614", attempt["tries"][0]["detail"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
