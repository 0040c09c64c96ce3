"""What becomes of an email on its way: servers that fail at every step, Postfix, MX records, DKIM, bounces."""

import base64
import collections
import json
import os
import random
import smtplib
import subprocess
import sys
import tempfile
import time
import unittest

import dkim

sys.path.insert(0, os.path.dirname(__file__))
from fault_smtp import CLOSE, RESET, SILENCE, Drip, Hold, Sink
from neighbours import Dnsmasq, Postfix
from outbox_server import Mariadb, OutboxServer, certificate, free_port, quoted, simple_email, wait_until

LATER, NEVER = "451 4.3.0 later", "550 5.7.0 never"


def tearDownModule():
    Mariadb.stop()


def relay(sink, *options):
    return OutboxServer("--outbox-mode", "relay", "--outbox-relay", sink.url, *options)


class Case:
    """A server that fails once, and what is to become of an email that meets it."""

    def __init__(self, step, faults, outcome, state="SENT", pipelining=True, size=0):
        self.step, self.outcome, self.state, self.size = step, outcome, state, size
        self.sink = Sink({step: faults if isinstance(faults, list) else [faults]}, pipelining=pipelining)
        self.resets = faults is RESET
        self.name = f"{step} {faults}" + ("" if pipelining else " without pipelining")

    def email(self, domain):
        attachments = [{"name": "large", "content": base64.b64encode(os.urandom(self.size)).decode()}] if self.size else []
        return simple_email(to=f"ann@{domain}", subject=self.name, attachments=attachments)


def all_cases():
    lost = (SILENCE, RESET, CLOSE, Drip())
    for pipelining in (True, False):
        for step in ("greeting", "hello"):
            for fault in (LATER, "421 4.3.2 going down", *lost):
                yield Case(step, fault, "deferred", pipelining=pipelining)
        yield Case("greeting", "554 5.7.1 not you", "deferred", pipelining=pipelining)
        yield Case("hello", ["502 5.5.1 what?", "502 5.5.1 what?"], "deferred", pipelining=pipelining)  # HELO is tried, too
        for step in ("sender", "recipient", "data"):
            yield Case(step, NEVER, "failed", "FAILED", pipelining)
            for fault in (LATER, "421 4.3.2 going down", "nonsense", *lost):
                yield Case(step, fault, "deferred", pipelining=pipelining)
        yield Case("content", NEVER, "failed", "FAILED", pipelining)
        for fault in (LATER, "421 4.3.2 going down"):
            yield Case("content", fault, "deferred", pipelining=pipelining)
        for fault in lost:
            yield Case("content", fault, "unknown", pipelining=pipelining)
        for fault in (LATER, NEVER, *lost):
            yield Case("quit", fault, "delivered", pipelining=pipelining)
    yield Case("middle", RESET, "deferred", size=20_000_000)


class Faults(unittest.TestCase):
    def test_every_fault_at_every_step_has_the_outcome_that_it_should(self):
        cases = {f"case{number}.example": case for number, case in enumerate(all_cases())}
        routes = [word for domain, case in cases.items() for word in ("--outbox-route", f"{domain}={case.sink.url}")]
        with OutboxServer(*routes) as server:
            for case in cases.values():
                self.enterContext(case.sink)
            sent = {domain: server.post(case.email(domain))["results"][0]["id"] for domain, case in cases.items()}
            for domain, case in cases.items():
                with self.subTest(case.name):
                    self.check(server.wait_for(sent[domain], "SENT", "FAILED"), case, sent[domain])
            # Connections that rest are taken leave of; whatever comes of that changes nothing, and nothing is sent again.
            taken = {domain: len(case.sink.letters) for domain, case in cases.items()}
            before = {domain: server.show(sent[domain]) for domain in cases}
            server.restart()
            for domain, case in cases.items():
                if case.step == "quit":
                    self.assertIn("QUIT", case.sink.commands, case.name)
            time.sleep(1)
            self.assertEqual({domain: server.show(sent[domain]) for domain in cases}, before)
            self.assertEqual({domain: len(case.sink.letters) for domain, case in cases.items()}, taken)

    def check(self, shown, case, identifier):
        first = shown["attempts"][0]
        self.assertEqual((shown["status"], first["outcome"]), (case.state, case.outcome), json.dumps(shown, indent=1))
        if case.outcome != "delivered":
            # With a reset go replies that were on their way: it shows earlier, where several were waited for.
            earlier = {"greeting": ("connect",), "recipient": ("sender",), "data": ("sender", "recipient")}.get(case.step, ()) if case.resets else ()
            steps = (*earlier, "content" if case.step == "middle" else case.step)
            self.assertIn(first["results"][0]["step"], steps)
            self.assertTrue(first["results"][0]["reply"])
        letters = case.sink.of(identifier)
        self.assertEqual(len(letters), len(case.sink.letters))
        outcomes = [attempt["outcome"] for attempt in shown["attempts"]]
        repeated = [attempt["repeated"] for attempt in shown["attempts"]]
        if case.state == "FAILED":
            self.assertEqual((outcomes, letters), (["failed"], []))
            self.assertEqual(shown["message"]["recipients"][0]["result"], "failed")
            self.assertIn(NEVER, shown["reason"])
        elif case.outcome == "delivered":
            self.assertEqual((outcomes, len(letters)), (["delivered"], 1))
        else:
            unknown = case.outcome == "unknown"
            self.assertEqual((outcomes, repeated), ([case.outcome, "delivered"], [False, unknown]))
            self.assertEqual([letter.acknowledged for letter in letters], [False, True] if unknown else [True])
            self.assertEqual(len({letter.data for letter in letters}), 1)
            self.assertEqual(shown["message"]["recipients"][0].get("may_have_it", False), unknown)

    def test_what_is_acknowledged_is_not_sent_again_and_what_is_accepted_is_not_lost(self):
        """Hundreds of emails to a server that fails at random."""
        chance = random.Random(17)
        faults = {"sender": (LATER, NEVER, RESET, "421 4.3.2 bye"), "recipient": (LATER, NEVER, RESET), "data": (LATER, CLOSE, "421 4.3.2 bye"),
                  "content": (LATER, NEVER, RESET, CLOSE, "421 4.3.2 bye")}

        def choose(step):
            return chance.choice(faults[step]) if step in faults and chance.random() < 0.12 else None

        with Sink(choose=choose) as sink, relay(sink) as server:
            ids = [result["id"] for _ in range(10) for result in server.post(*(simple_email(to=[f"a{n}@example.org", f"b{n}@example.org"]) for n in range(30)))["results"]]
            self.assertEqual(len(set(ids)), 300)
            emails = [server.wait_for(identifier, "SENT", "FAILED", seconds=120) for identifier in ids]
            copies = collections.defaultdict(lambda: [0, 0])
            for letter in sink.letters:
                for recipient in letter.recipients:
                    copies[letter.id, recipient][letter.acknowledged] += 1
            seen = collections.Counter()
            for shown in emails:
                for recipient in shown["message"]["recipients"]:
                    lost, acknowledged = copies[shown["id"], recipient["address"]]
                    unknown = sum(result["outcome"] == "unknown" for attempt in shown["attempts"] for result in attempt["results"] if result["address"] == recipient["address"])
                    self.assertEqual((acknowledged, lost), (recipient["result"] == "delivered", unknown), json.dumps(shown, indent=1))
                    self.assertIn(recipient["result"], ("delivered", "failed"))
                    seen[recipient["result"]] += 1
                    seen["unknown"] += unknown
            # Each of them did happen.
            self.assertTrue(all(seen[what] >= 5 for what in ("delivered", "failed", "unknown")), seen)

    def test_an_unknown_outcome_can_be_final(self):
        with Sink({"content": [RESET]}) as sink, relay(sink, "--outbox-unknown", "fail") as server:
            identifier = server.submit()
            shown = server.wait_for(identifier)
            self.assertEqual((shown["status"], shown["message"]["recipients"][0]["result"], len(shown["attempts"])), ("FAILED", "unknown", 1))
            time.sleep(1)
            self.assertEqual(len(sink.letters), 1)
            server.call("POST", f"/outbox/emails/{identifier}/requeue", expect=202)
            shown = server.wait_for(identifier, "SENT")
            self.assertTrue(shown["attempts"][1]["repeated"])

    def test_it_is_given_up_in_the_end(self):
        with Sink({"recipient": 1000 * [LATER]}) as sink, relay(sink, "--outbox-give-up", "2s") as server:
            shown = server.wait_for(server.submit(), "FAILED")
            self.assertGreaterEqual(shown["message"]["attempts"], 3)
            self.assertIn("given up", shown["reason"])
            self.assertIn(LATER, shown["reason"])
            # Each pause is about twice as long as the one before, up to the longest.
            began = [attempt["began"] for attempt in shown["attempts"]]
            self.assertEqual(began, sorted(began))
            self.assertEqual(sink.letters, [])

    def test_recipients_are_each_told_apart(self):
        script = {"recipient b@example.org": ["550 5.1.1 no such user"], "recipient c@example.org": 2 * ["450 4.2.1 busy"]}
        with Sink(script) as sink, relay(sink) as server:
            shown = server.wait_for(server.submit(to=[f"{name}@example.org" for name in "abcd"]), "SENT")
            self.assertEqual({r["address"][0]: r["result"] for r in shown["message"]["recipients"]}, {"a": "delivered", "b": "failed", "c": "delivered", "d": "delivered"})
            self.assertEqual([letter.recipients for letter in sink.letters], [["a@example.org", "d@example.org"], ["c@example.org"]])
            self.assertEqual([len(attempt["results"]) for attempt in shown["attempts"]], [4, 1, 1])
            self.assertIn("b@example.org: 550 5.1.1 no such user", shown["reason"])
            # Whom a server does not know is not asked for again.
            listed = server.call("GET", "/outbox/suppression")["addresses"]
            self.assertEqual([(one["address"], one["reason"], one["email"]) for one in listed], [("b@example.org", "BOUNCE", shown["id"])])

    def test_one_server_that_is_silent_keeps_no_other_waiting(self):
        with Sink({"greeting": 50 * [SILENCE]}) as silent, Sink() as sink:
            with relay(sink, "--outbox-route", f"silent.example={silent.url}") as server:
                server.post(*(simple_email(to="ann@silent.example") for _ in range(30)))
                begun = time.monotonic()
                for identifier in [server.submit() for _ in range(20)]:
                    server.wait_for(identifier, "SENT")
                self.assertLess(time.monotonic() - begun, 5)

    def test_a_message_that_is_larger_than_the_server_takes_fails_at_once(self):
        offers = "250-sink\r\n250 SIZE 1000"
        with Sink({"hello": 10 * [offers]}) as sink, relay(sink) as server:
            shown = server.wait_for(server.submit(body_text="x" * 2000), "FAILED")
            self.assertEqual(shown["message"]["attempts"], 1)
            self.assertEqual(sink.letters, [])

    def test_higher_priorities_go_first(self):
        with Sink(choose=lambda step: Hold(0.1) if step == "content" else None) as sink, relay(sink, "--outbox-concurrency", "1") as server:
            server.call("PUT", "/outbox/pauses/*")
            priorities = {server.submit(priority=priority): priority for priority in 4 * ["low", "normal", "high"]}
            server.call("DELETE", "/outbox/pauses/*")
            for identifier in priorities:
                server.wait_for(identifier, "SENT")
            went = [priorities[letter.id] for letter in sink.letters]
            # While the first is on its way the others come together.
            self.assertEqual(went[1:], sorted(went[1:], key=["high", "normal", "low"].index))

    def test_connections_are_used_again_and_a_rate_is_kept(self):
        with Sink() as sink, relay(sink, "--outbox-concurrency", "1", "--outbox-rate", "*=10") as server:
            begun = time.monotonic()
            for identifier in [server.submit() for _ in range(20)]:
                server.wait_for(identifier, "SENT")
            self.assertGreater(time.monotonic() - begun, 1.6)
            self.assertLess(sink.sessions, 5)
            self.assertEqual(len(sink.letters), 20)


class Relay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        cls.certificate = certificate(folder.name)

    @unittest.skipUnless(Postfix.can_run, "a private Postfix needs root")
    def test_postfix_takes_it_over_starttls_and_with_a_login(self):
        with Sink() as sink, Postfix(self.certificate, {"me@example.com": "p@ss:wörd/%"}, sink.port) as postfix:
            url = f"smtp://{quoted('me@example.com')}:{quoted('p@ss:wörd/%')}@localhost:{postfix.port}?tls=required"
            with OutboxServer("--outbox-mode", "relay", "--outbox-relay", url, "--outbox-ca", self.certificate[0]) as server:
                identifier = server.submit(subject="by Postfix", body_text="Grüße\n", to=["ann@example.org", "bob@example.net"])
                shown = server.wait_for(identifier, "SENT")
                self.assertIn("queued as", shown["reason"])
                wait_until(lambda: sum(len(letter.recipients) for letter in sink.letters) == 2)
                letter = sink.letters[0]
                self.assertEqual(letter.sender, "shop@example.com")
                received = letter.message["Received"]
                self.assertIn("using TLSv1.", received)
                self.assertIn("Authenticated sender: me@example.com", received)
                self.assertEqual(letter.message.get_content().strip(), "Grüße")

    @unittest.skipUnless(Postfix.can_run, "a private Postfix needs root")
    def test_a_wrong_password_costs_no_mail(self):
        with Sink() as sink, Postfix(self.certificate, {"me": "right"}, sink.port) as postfix:
            with OutboxServer("--outbox-mode", "relay", "--outbox-relay", f"smtp://me:wrong@localhost:{postfix.port}", "--outbox-ca", self.certificate[0]) as server:
                identifier = server.submit()
                wait_until(lambda: server.show(identifier)["attempts"])
                shown = server.show(identifier)
                self.assertIn(shown["status"], ("READY", "PROCESSING"))
                result = shown["attempts"][0]["results"][0]
                self.assertEqual((result["outcome"], result["step"], result["reply"][:3]), ("deferred", "login", "535"))
                at = server.options.index("--outbox-relay") + 1
                server.options[at] = server.options[at].replace("wrong", "right")
                server.restart()
                server.wait_for(identifier, "SENT")

    def test_no_password_and_no_message_goes_out_in_the_clear(self):
        """Neither where TLS is not offered, nor to a server that cannot show that it is the one."""
        with Sink(users={"me": "secret"}) as plain, Sink(users={"me": "secret"}, certificate=self.certificate) as stranger:
            for sink, url in ((plain, f"smtp://me:secret@localhost:{plain.port}?tls=required"), (stranger, f"smtp://me:secret@localhost:{stranger.port}?tls=required"),
                              (stranger, f"smtp://me:secret@localhost:{stranger.port}")):
                with OutboxServer("--outbox-mode", "relay", "--outbox-relay", url) as server:
                    identifier = server.submit()
                    wait_until(lambda: server.show(identifier)["attempts"])
                    result = server.show(identifier)["attempts"][0]["results"][0]
                    self.assertEqual(result["outcome"], "deferred", result)
                    self.assertIn(result["step"], ("tls", "login"))
                self.assertEqual([line for line in sink.commands if line.startswith(("AUTH", "MAIL", "RCPT", "DATA"))], [])

    def test_a_certificate_need_not_be_checked(self):
        with Sink(users={"me": "secret"}, certificate=self.certificate) as sink:
            with OutboxServer("--outbox-mode", "relay", "--outbox-relay", f"smtp://me:secret@localhost:{sink.port}?tls=required&verify=no") as server:
                server.wait_for(server.submit(), "SENT")
            self.assertEqual([(letter.secure, letter.user) for letter in sink.letters], [(True, "me")])


class Direct(unittest.TestCase):
    """Servers of one port on several addresses of this machine, found by MX."""

    def serve(self, *options, **servers):
        """Servers at 127.0.0.2, 127.0.0.3, … by name, and an outbox that knows their names. A name without a server is a script of None."""
        self.sinks, addresses, port = {}, {}, free_port()
        for number, (name, sink) in enumerate(servers.items(), 2):
            addresses[f"{name}.example"] = f"127.0.0.{number}"
            if sink is not None:
                self.sinks[name] = self.enterContext(Sink(host=f"127.0.0.{number}", port=port, **sink))
        return addresses, ("--outbox-mode", "direct", "--outbox-direct-port", str(port), *options)

    def test_an_mx_is_found_and_the_best_that_answers_is_taken(self):
        addresses, options = self.serve(first=None, second={}, third={}, plain={})
        mx = [("shop.example", "third.example", 30), ("shop.example", "second.example", 20), ("shop.example", "first.example", 10), ("direct.example", "third.example", 0)]
        with Dnsmasq(mx=mx, a={**addresses, "inside.example": "169.254.169.254"}, null_mx=["null.example"]) as dns:
            with OutboxServer(*options, "--outbox-dns", dns.address, "--outbox-route", "caught.example=capture") as server:
                to = {"shop": "second", "direct": "third", "plain": "plain"}
                ids = {name: server.submit(to=f"ann@{name}.example") for name in (*to, "null", "nowhere", "inside", "caught")}
                several = server.submit(to=["bob@shop.example", "bob@direct.example", "bob@caught.example", "eve@shop.example"])
                for name, sink in to.items():
                    shown = server.wait_for(ids[name], "SENT")
                    self.assertEqual([letter.recipients for letter in self.sinks[sink].of(ids[name])], [[f"ann@{name}.example"]])
                    self.assertEqual(shown["attempts"][-1]["results"][0]["host"], f"{sink}.example")
                for name, code in (("null", "null MX"), ("nowhere", "does not exist"), ("inside", "inside.example")):
                    shown = server.wait_for(ids[name], "FAILED")
                    self.assertIn(code, shown["reason"])
                    self.assertEqual(shown["message"]["attempts"], 1)
                server.wait_for(ids["caught"], "SENT")
                shown = server.wait_for(several, "SENT")
                self.assertEqual([r["result"] for r in shown["message"]["recipients"]], 4 * ["delivered"])
                self.assertEqual(self.sinks["second"].of(several)[0].recipients, ["bob@shop.example", "eve@shop.example"])
                self.assertEqual(self.sinks["third"].of(several)[0].recipients, ["bob@direct.example"])
                self.assertEqual(sorted(m["envelope"]["to"] for m in server.captured()), [["ann@caught.example"], ["bob@caught.example"]])

    def test_tls_is_used_where_it_is_offered_and_demanded_where_it_is_required(self):
        with tempfile.TemporaryDirectory() as folder:
            right, wrong = certificate(folder, "right.example"), certificate(folder, "other.example")
            both = os.path.join(folder, "both.pem")
            with open(both, "w") as file:
                for cert in (right, wrong):
                    with open(cert[0]) as one:
                        file.write(one.read())
            for required in (False, True):
                addresses, options = self.serve("--outbox-tls", "required" if required else "opportunistic", "--outbox-ca", both,
                                                right={"certificate": right}, wrong={"certificate": wrong}, plain={})
                with Dnsmasq(a=addresses) as dns, OutboxServer(*options, "--outbox-dns", dns.address) as server:
                    ids = {name: server.submit(to=f"ann@{name}.example") for name in self.sinks}
                    server.wait_for(ids["right"], "SENT")
                    for name in ("wrong", "plain"):
                        if required:
                            wait_until(lambda: server.show(ids[name])["attempts"])
                            self.assertEqual(server.show(ids[name])["attempts"][0]["results"][0]["step"], "tls")
                        else:
                            server.wait_for(ids[name], "SENT")
                    secure = {name: [letter.secure for letter in sink.letters] for name, sink in self.sinks.items()}
                    self.assertEqual(secure, {"right": [True], "wrong": [], "plain": []} if required else {"right": [True], "wrong": [True], "plain": [False]})

    def test_names_that_cannot_be_looked_up_now_are_looked_up_later(self):
        addresses, options = self.serve(plain={})
        dns = Dnsmasq(a=addresses)
        with OutboxServer(*options, "--outbox-dns", dns.address) as server:
            identifier = server.submit(to="ann@plain.example")
            wait_until(lambda: server.show(identifier)["attempts"], 60)
            self.assertEqual(server.show(identifier)["attempts"][0]["outcome"], "deferred")
            with dns:
                server.wait_for(identifier, "SENT")


class Dkim(unittest.TestCase):
    def test_what_is_sent_is_signed_and_dkimpy_accepts_it(self):
        with tempfile.TemporaryDirectory() as folder, Sink() as sink:
            records, options = {}, []
            for kind, how in (("rsa", ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]), ("ed25519", ["ED25519"])):
                key = os.path.join(folder, kind)
                subprocess.run(["openssl", "genpkey", "-algorithm", *how, "-out", key], check=True, capture_output=True)
                public = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
                public = public[-32:] if kind == "ed25519" else public
                records[f"{kind}._domainkey.example.com".encode()] = f"v=DKIM1; k={kind}; p={base64.b64encode(public).decode()}".encode()
                options += ["--outbox-dkim", f"example.com:{kind}:{key}"]
            with relay(sink, *options) as server:
                signed = server.submit(subject="Grüße", body_html="<p>Grüße</p>", body_text=".\n..\nx \n\n\n", custom_headers={"List-Unsubscribe": "<https://example.com/u>"})
                unsigned = server.submit(**{"from": "a@other.example"})
                with smtplib.SMTP("127.0.0.1", server.submission) as client:
                    client.ehlo()
                    client.mail("a@example.com")
                    client.rcpt("b@example.org")
                    submitted = client.data("From: a@EXAMPLE.com\nSubject: bare\nMessage-ID: <x@example.com>\n\n.\nbody")[1].decode().split()[-1]
                for identifier in (signed, unsigned, submitted):
                    server.wait_for(identifier, "SENT")
            messages = {letter.message["Subject"]: letter.data for letter in sink.letters}
            for data in (messages["Grüße"], messages["bare"]):
                verifier = dkim.DKIM(data)
                for index in range(2):
                    self.assertTrue(verifier.verify(idx=index, dnsfunc=lambda name, timeout=5: records.get(name.rstrip(b"."))))
                self.assertEqual(data.count(b"DKIM-Signature:"), 2)
                changed = data.replace(b"Subject: ", b"Subject: not ")
                self.assertFalse(dkim.DKIM(changed).verify(dnsfunc=lambda name, timeout=5: records.get(name.rstrip(b"."))))
            self.assertNotIn(b"DKIM-Signature", messages["Order 17"])


class Bounces(unittest.TestCase):
    def report(self, recipient, status="5.1.1", action="failed"):
        return (f"From: MAILER-DAEMON@mx.example.org\r\nSubject: Undelivered\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n"
                f"--b\r\nContent-Type: text/plain\r\n\r\nI am sorry.\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.org\r\n\r\n"
                f"Final-Recipient: rfc822; {recipient}\r\nAction: {action}\r\nStatus: {status}\r\nDiagnostic-Code: smtp; 550 {status} so it is\r\n\r\n--b--\r\n")

    def bounce(self, port, to, report):
        with smtplib.SMTP("127.0.0.1", port) as client:
            client.ehlo()
            client.mail("")
            code, reply = client.rcpt(to)
            return client.data(report)[0] if code == 250 else code

    def test_a_report_to_the_address_of_an_email_suppresses_its_recipient(self):
        port = free_port()
        with Sink() as sink, relay(sink, "--outbox-bounces", f"127.0.0.1:{port}", "--outbox-bounce-domain", "bounces.example.com") as server:
            def suppressed():
                return {one["address"]: one for one in server.call("GET", "/outbox/suppression")["addresses"]}

            identifier = server.submit(to=["ann@example.org", "Bob@example.org"])
            server.wait_for(identifier, "SENT")
            sender = sink.letters[0].sender
            self.assertTrue(sender.endswith("@bounces.example.com") and identifier in sender, sender)
            self.assertEqual(sink.letters[0].message["From"], "Shop <shop@example.com>")
            # What is for a while, of somebody else, or no report at all suppresses nobody.
            self.assertEqual(self.bounce(port, sender, self.report("ann@example.org", "4.2.2", "delayed")), 250)
            self.assertEqual(self.bounce(port, sender, self.report("ann@example.org", "4.2.2")), 250)
            self.assertEqual(self.bounce(port, sender, self.report("eve@example.org")), 250)
            self.assertEqual(self.bounce(port, sender, "Subject: on holiday\r\n\r\nann@example.org 5.1.1\r\n"), 250)
            forged = sender.replace(identifier[0], "0" if identifier[0] != "0" else "1", 1)
            for address in (forged, "ann@example.org", "bounce+x@bounces.example.com", "postmaster@bounces.example.com"):
                self.assertEqual(self.bounce(port, address, self.report("ann@example.org")), 550, address)
            self.assertEqual(suppressed(), {})
            self.assertEqual(self.bounce(port, sender, self.report("bob@example.org")), 250)
            self.assertEqual([(one["address"], one["reason"], one["email"]) for one in suppressed().values()], [("bob@example.org", "BOUNCE", identifier)])
            self.assertIn("so it is", suppressed()["bob@example.org"]["diagnostic"])
            shown = server.wait_for(server.submit(to="bob@example.org"))
            self.assertEqual((shown["status"], shown["message"]["recipients"][0]["result"]), ("FAILED", "suppressed"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
