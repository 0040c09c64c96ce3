"""Twilio as it documents its REST API, for a test that plays the people at the other end.

    with FakeTwilio() as twilio:
        …                                       # a program calls {twilio.url}/2010-04-01/Accounts/{twilio.account}/Calls.json
        call = twilio.calls[0]
        call.ring()
        answer = call.press("1")                # picks up, presses; the TwiML that came back
        call.hang_up()
        twilio.reply(twilio.messages[0], "1")   # a text, to twilio.text_url

It is strict where Twilio is lenient: what Twilio would overlook (an unknown parameter, a verb it does not know, a callback that is not
answered with TwiML) is written down in `problems`, and `check()` fails for it; so does the end of the `with`. From the documentation:
voice/api/call-resource, messaging/api/message-resource, voice/twiml, usage/security, usage/webhooks, iam/test-credentials, api/errors."""

import base64
import dataclasses
import email.utils
import hashlib
import hmac
import http.client
import http.server
import json
import re
import socket
import threading
import time
import urllib.parse
import uuid
import xml.etree.ElementTree

FORM = "application/x-www-form-urlencoded"
MOST_TWIML, MOST_SAID, MOST_BODY, MOST_URL = 4000, 4096, 1600, 4000  # characters
RIGHT = object()  # a signature: the right one

CALL_PARAMETERS = {"To", "From", "Url", "Twiml", "ApplicationSid", "Method", "FallbackUrl", "FallbackMethod", "StatusCallback",
                   "StatusCallbackEvent", "StatusCallbackMethod", "SendDigits", "Timeout", "Record", "MachineDetection", "MachineDetectionTimeout",
                   "CallerId", "CallReason", "TimeLimit"}
MESSAGE_PARAMETERS = {"To", "From", "Body", "StatusCallback", "MessagingServiceSid", "ApplicationSid", "MediaUrl", "ValidityPeriod",
                      "ProvideFeedback", "SmartEncoded", "Attempt", "MaxPrice"}
EVENTS = ("initiated", "ringing", "answered", "completed")
ENDS = ("completed", "busy", "no-answer", "failed", "canceled")

VOICE_VERBS = {  # their attributes, and what they hold
    "Say": ({"voice", "language", "loop"}, set()),
    "Gather": ({"action", "method", "numDigits", "timeout", "finishOnKey", "input", "actionOnEmptyResult", "language", "hints", "bargeIn"},
               {"Say", "Pause", "Play"}),
    "Pause": ({"length"}, set()), "Play": ({"loop", "digits"}, set()), "Hangup": (set(), set()), "Redirect": ({"method"}, set())}
TEXT_VERBS = {"Message": ({"to", "from", "action", "method"}, {"Body"}), "Body": (set(), set()), "Redirect": ({"method"}, set())}

# What the test credentials document for numbers, as code and text.
CALL_NUMBERS = {"+15005550001": (21217, "Phone number does not appear to be valid"),
                "+15005550002": (21214, "'To' phone number cannot be reached"),
                "+15005550003": (21215, "Account not authorized to make international calls"),
                "+15005550004": (21216, "This phone number is blocked")}
TEXT_NUMBERS = {"+15005550001": (21211, "Invalid 'To' Phone Number"),
                "+15005550002": (21612, "The 'To' phone number is not currently reachable via SMS"),
                "+15005550003": (21408, "Permission to send an SMS has not been enabled for the region"),
                "+15005550004": (21610, "Attempt to send to unsubscribed recipient"),
                "+15005550009": (21614, "'To' number is not a valid mobile number")}
OPT_OUT = {"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"}
OPT_IN = {"START", "YES", "UNSTOP"}


class Refused(Exception):
    """What the API answers with in place of a resource."""

    def __init__(self, status, code, message, headers=None):
        super().__init__(message)
        self.status, self.headers = status, headers or {}
        self.body = {"code": code, "message": message, "more_info": f"https://www.twilio.com/docs/errors/{code}", "status": status}


class BadTwiml(AssertionError):
    """12100, 12200 and the like."""


@dataclasses.dataclass
class Request:
    """One that came."""
    at: float  # time.monotonic
    method: str
    path: str
    headers: dict  # names in lower case
    form: dict  # lists of values
    status: int = 0  # what it was answered with; 0: nothing


@dataclasses.dataclass
class Post:
    """One that went out: a callback."""
    url: str
    form: dict
    signature: str | None
    status: int = 0
    content_type: str = ""
    body: bytes = b""


def sign(token, url, form):
    """X-Twilio-Signature: the URL as it stands, then the names and values of the body, by name, nothing between them; each value of a name
    once, sorted. Of characters, not of their percent-encoding."""
    text = url + "".join(name + value for name in sorted(form) for value in sorted(set(form[name])))
    return base64.b64encode(hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()).decode()


def without_port(url):
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.hostname))


def problem_with_url(url):
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path:
        return "not a full URL"
    if "_" in parts.hostname:
        return "a host name with an underscore"
    if not url.isascii() or re.search(r"[\s<>\"{}|\\^`]", url):
        return "not encoded"
    return f"longer than {MOST_URL}" if len(url) > MOST_URL else ""


class Twiml:
    """A document, read strictly."""

    def __init__(self, text, verbs=VOICE_VERBS):
        self.text = text
        if "<!DOCTYPE" in text:
            raise BadTwiml(f"a document type: {text}")
        try:
            self.root = xml.etree.ElementTree.fromstring(text.encode())
        except xml.etree.ElementTree.ParseError as error:
            raise BadTwiml(f"12100 document parse failure: {error}: {text}") from error
        if self.root.tag != "Response" or self.root.attrib:
            raise BadTwiml(f"12100: expected <Response>: {text}")
        self.judge(self.root, set(verbs) - {"Body"}, verbs)

    def judge(self, element, allowed, verbs):
        for child in element:
            if not isinstance(child.tag, str) or child.tag not in allowed:
                raise BadTwiml(f"12200: {child.tag} is not known in {element.tag}: {self.text}")
            attributes, inner = verbs[child.tag]
            if unknown := set(child.attrib) - attributes:
                raise BadTwiml(f"12200: {unknown} of {child.tag}: {self.text}")
            for name in ("numDigits", "timeout", "length", "loop"):
                value = child.get(name, "1")
                if not value.isdecimal() and not (name == "timeout" and value == "auto"):
                    raise BadTwiml(f"12200: {name}={value}: {self.text}")
            if child.get("method", "POST") not in ("GET", "POST"):
                raise BadTwiml(f"12200: method: {self.text}")
            # A document that came in a parameter has no address for relative ones to begin at.
            for url in [child.get("action")] + [child.text if child.tag == "Redirect" else None]:
                if url is not None and (wrong := problem_with_url(url)):
                    raise BadTwiml(f"11100: {url}: {wrong}")
            if child.tag == "Say" and not 0 < len(child.text or "") <= MOST_SAID:
                raise BadTwiml(f"13520, 13521: {len(child.text or '')} characters to say: {self.text}")
            if child.tag == "Gather" and child.get("action") is None:
                raise BadTwiml(f"no action, and no document to go back to: {self.text}")
            self.judge(child, inner, verbs)
            if child.tag not in ("Say", "Body", "Message", "Play", "Redirect") and (child.text or "").strip() or (child.tail or "").strip():
                raise BadTwiml(f"12200: text between verbs: {self.text}")

    @property
    def said(self):
        return " ".join(element.text for element in self.root.iter("Say"))

    @property
    def messages(self):
        return ["".join(element.itertext()) for element in self.root.iter("Message")]

    @property
    def gather(self):
        return self.root.find("Gather")


class Call:
    def __init__(self, twilio, form):
        self.twilio, self.form = twilio, {name: values[0] for name, values in form.items()}
        self.sid = "CA" + uuid.uuid4().hex
        self.to, self.sender, self.status, self.sequence = self.form["To"], self.form["From"], "queued", 0
        self.events = set(form.get("StatusCallbackEvent", ["completed"])) if "StatusCallback" in form else set()
        self.twiml = self.form.get("Twiml", "")
        self.document = None  # what is being carried out; nothing: bad
        self.at = time.monotonic()
        try:
            self.document = Twiml(self.twiml)
        except BadTwiml as wrong:
            twilio.problems.append(str(wrong))

    @property
    def said(self):
        return (self.document or Twiml(self.twiml)).said

    def parameters(self, **more):
        """Those of every request about a call; some are empty, and not all are ASCII."""
        return {"AccountSid": self.twilio.account, "ApiVersion": "2010-04-01", "CallSid": self.sid, "CallStatus": self.status, "Called": self.to,
                "Caller": self.sender, "CalledCity": "MÜNCHEN & CO", "CalledCountry": "IT", "CalledState": "", "CalledZip": "",
                "Direction": "outbound-api", "From": self.sender, "FromCountry": "US", "To": self.to, "ToCountry": "IT", **more}

    def report(self, event, status, expect=200, signature=RIGHT, **more):
        self.status = status
        if event not in self.events:
            return None
        form = self.parameters(Timestamp=email.utils.formatdate(), CallbackSource="call-progress-events", SequenceNumber=str(self.sequence), **more)
        self.sequence += 1
        return self.twilio.post(self.form["StatusCallback"], form, self.form.get("StatusCallbackMethod", "POST"), expect, signature)

    def ring(self, **how):
        self.report("initiated", "initiated", **how)
        self.report("ringing", "ringing", **how)

    def answer(self, **how):
        """Somebody picks up."""
        assert self.status not in ENDS and self.status != "in-progress", self.status
        self.report("answered", "in-progress", **how)

    def press(self, digits, expect=200, signature=RIGHT):
        """Of a call that was picked up, or is now. Nothing: Gather gives up. What comes next."""
        if self.status != "in-progress":
            self.answer()
        gather = self.document.gather
        assert gather is not None, f"nothing to press here: {self.document.text}"
        finish = gather.get("finishOnKey", "#")
        digits = digits.split(finish)[0] if finish else digits
        if not digits and gather.get("actionOnEmptyResult") != "true":
            return self.fall_through(expect, signature)
        digits = digits[:int(gather.get("numDigits", "99"))]
        return self.go_on(gather, gather.get("action"), {"Digits": digits, "FinishedOnKey": "", "msg": "Gather End"}, expect, signature)

    def fall_through(self, expect, signature):
        verbs = list(self.document.root)
        rest = verbs[verbs.index(self.document.gather) + 1:]
        for verb in rest:
            if verb.tag == "Redirect":
                return self.go_on(verb, verb.text, {}, expect, signature)
        left = xml.etree.ElementTree.Element("Response")
        left.extend(rest)
        self.document = Twiml(xml.etree.ElementTree.tostring(left, "unicode"))
        return self.document

    def go_on(self, verb, url, more, expect, signature):
        post = self.twilio.post(url, self.parameters(**more), verb.get("method", "POST"), expect, signature)
        if expect != 200:
            return post
        self.document = self.twilio.twiml_of(post, VOICE_VERBS)
        return self.document

    def hang_up(self):
        self.complete("completed" if self.status == "in-progress" else "no-answer")

    def complete(self, status="completed", **how):
        assert status in ENDS, status
        length = {"CallDuration": "7", "Duration": "1"} if status == "completed" else {"CallDuration": "0"}
        return self.report("completed", status, **length, SipResponseCode="200" if status == "completed" else "487", **how)

    def resource(self):
        account, now = self.twilio.account, email.utils.formatdate(usegmt=True).replace("GMT", "+0000")
        uri = f"/2010-04-01/Accounts/{account}/Calls/{self.sid}"
        return {"account_sid": account, "annotation": None, "answered_by": None, "api_version": "2010-04-01", "caller_name": None,
                "date_created": now, "date_updated": now, "direction": "outbound-api", "duration": None, "end_time": None,
                "forwarded_from": None, "from": self.sender, "from_formatted": self.sender, "group_sid": None, "parent_call_sid": None,
                "phone_number_sid": "PN" + 32 * "0", "price": None, "price_unit": "USD", "queue_time": "0", "sid": self.sid, "start_time": None,
                "status": self.status, "subresource_uris": {"recordings": uri + "/Recordings.json"}, "to": self.to, "to_formatted": self.to,
                "trunk_sid": None, "uri": uri + ".json"}


class Message:
    def __init__(self, twilio, form):
        self.twilio, self.form = twilio, {name: values[0] for name, values in form.items()}
        self.sid = "SM" + uuid.uuid4().hex
        self.to, self.sender, self.body, self.status = self.form["To"], self.form["From"], self.form["Body"], "queued"
        self.at = time.monotonic()

    def report(self, status, error=None, expect=200, signature=RIGHT):
        """sending, sent, delivered, undelivered, failed."""
        self.status = status
        if "StatusCallback" not in self.form:
            return None
        form = {"AccountSid": self.twilio.account, "ApiVersion": "2010-04-01", "From": self.sender, "MessageSid": self.sid, "MessageStatus": status,
                "SmsSid": self.sid, "SmsStatus": status, "To": self.to, **({"ErrorCode": str(error)} if error else {})}
        return self.twilio.post(self.form["StatusCallback"], form, "POST", expect, signature)

    def resource(self):
        account, now = self.twilio.account, email.utils.formatdate(usegmt=True).replace("GMT", "+0000")
        uri = f"/2010-04-01/Accounts/{account}/Messages/{self.sid}"
        return {"account_sid": account, "api_version": "2010-04-01", "body": self.body, "date_created": now, "date_sent": None,
                "date_updated": now, "direction": "outbound-api", "error_code": None, "error_message": None, "from": self.sender,
                "messaging_service_sid": None, "num_media": "0", "num_segments": str(1 + len(self.body) // 160), "price": None, "price_unit": "USD",
                "sid": self.sid, "status": self.status, "subresource_uris": {"media": uri + "/Media.json"}, "to": self.to, "uri": uri + ".json"}


class FakeTwilio:
    """`senders`: the numbers of this account. `text_url`: where it takes the texts that people send. `port_in_signature`: what Twilio
    signs differs by product; its own libraries therefore take both."""

    def __init__(self, account="AC" + 32 * "a", token=2 * "0123456789abcdef", senders=("+15550100",), text_url=""):
        self.account, self.token, self.senders, self.text_url = account, token, senders, text_url
        self.port_in_signature = True
        self.calls, self.messages, self.requests, self.posts, self.problems = [], [], [], [], []
        self.faults, self.stopped, self.connections = [], set(), set()
        self.lock, self.over = threading.RLock(), threading.Event()
        # It keeps the port for itself while nothing listens on it.
        self.probe = socket.socket()
        self.probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.probe.bind(("127.0.0.1", 0))
        self.port, self.server = self.probe.getsockname()[1], None
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self.down = False
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        self.down = True
        self.probe.close()
        if kind is None:
            self.check()

    def check(self):
        problems, self.problems = self.problems, []
        assert not problems, "\n".join(problems)

    def clear(self):
        """All that was, and all that was to go wrong, is forgotten."""
        with self.lock:
            for each in (self.calls, self.messages, self.requests, self.posts, self.problems, self.faults, self.stopped):
                each.clear()

    # What goes wrong.

    def fail_next(self, n=1, status=500, code=20500, message="It was told to fail"):
        self.faults += [("fail", status, code, message, {})] * n

    def rate_limit(self, n=1, retry_after=None):
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self.faults += [("fail", 429, 20429, "Too Many Requests", headers)] * n

    def hang_next(self, n=1, does=False):
        """It takes the request, and never answers. `does`: it does what was asked for."""
        self.faults += [("hang", does)] * n

    def drop_next(self, n=1):
        """It does what was asked for, and closes the connection in place of an answer."""
        self.faults += [("drop", True)] * n

    @property
    def down(self):
        return self.server is None

    @down.setter
    def down(self, wanted):
        """Nobody listens there: connections are refused, and those that there were are closed."""
        if wanted == self.down:
            return
        if not wanted:
            self.server = Listener(self)
            threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
            return
        server, self.server = self.server, None
        server.shutdown()
        server.server_close()
        with self.lock:
            for connection in list(self.connections):
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    # The API.

    def create(self, path, headers, form):
        """The resource that was made; or it was refused."""
        if headers.get("content-type", "").split(";")[0].strip() != FORM:
            self.problems.append(f"Content-Type: {headers.get('content-type')}")
            form = {}  # they are not read, as the documentation of 21604 has it
        expected = "Basic " + base64.b64encode(f"{self.account}:{self.token}".encode()).decode()
        if headers.get("authorization") != expected:
            raise Refused(401, 20003, "Authenticate", {"WWW-Authenticate": 'Basic realm="Twilio API"'})
        make = {f"/2010-04-01/Accounts/{self.account}/Calls.json": self.create_call,
                f"/2010-04-01/Accounts/{self.account}/Messages.json": self.create_message}.get(path)
        if make is None:
            raise Refused(404, 20404, f"The requested resource {path} was not found")
        return make(form)

    def examine(self, form, known, repeated=()):
        for name, values in form.items():
            if name not in known:
                self.problems.append(f"the parameter {name} is not known")
            if len(values) > 1 and name not in repeated:
                self.problems.append(f"the parameter {name} came {len(values)} times")
        callback = form.get("StatusCallback", ["http://nowhere.example/"])[0]
        if wrong := problem_with_url(callback):
            raise Refused(400, 21609, f"Invalid 'StatusCallback' URL {callback}: {wrong}")

    def create_call(self, form):
        one = {name: values[0] for name, values in form.items() if values[0]}
        if "To" not in one:
            raise Refused(400, 21201, "No 'To' number is specified")
        if "From" not in one:
            raise Refused(400, 21213, "'From' phone number is required")
        if one["To"] in CALL_NUMBERS:
            raise Refused(400, *CALL_NUMBERS[one["To"]])
        if not re.fullmatch(r"\+[1-9]\d{3,14}", one["To"]):
            raise Refused(400, 21211, f"The phone number you are attempting to call, {one['To']}, is not valid.")
        if one["From"] not in self.senders:
            raise Refused(400, 21210, "The source phone number provided is not yet verified for your account.")
        if not one.keys() & {"Url", "Twiml", "ApplicationSid"}:
            raise Refused(400, 21205, "Url parameter is required.")
        if "Url" in one and problem_with_url(one["Url"]):
            raise Refused(400, 21205, "Url is not a valid URL")
        if len(one.get("Twiml", "")) > MOST_TWIML:  # the limit is documented, what it says then is not
            raise Refused(400, 21200, f"Twiml has {len(one['Twiml'])} characters, of {MOST_TWIML}")
        if not re.fullmatch(r"[1-9]\d*", one.get("Timeout", "60")) or int(one.get("Timeout", "60")) > 600:
            raise Refused(400, 21208, "Invalid Timeout")
        self.examine(form, CALL_PARAMETERS, ("StatusCallbackEvent",))
        if unknown := set(form.get("StatusCallbackEvent", [])) - set(EVENTS):
            self.problems.append(f"StatusCallbackEvent: {unknown}; each is a parameter of its own")
        for name in ("Method", "StatusCallbackMethod"):
            if one.get(name, "POST") not in ("GET", "POST"):
                self.problems.append(f"{name}: {one[name]}")
        call = Call(self, form)
        with self.lock:
            self.calls.append(call)
        return call.resource()

    def create_message(self, form):
        one = {name: values[0] for name, values in form.items() if values[0]}
        if "To" not in one:
            raise Refused(400, 21604, "A 'To' phone number is required.")
        if "From" not in one:
            raise Refused(400, 21603, "A 'From' phone number is required.")
        if "Body" not in one:
            raise Refused(400, 21602, "Message body is required.")
        if one["To"] in TEXT_NUMBERS:
            raise Refused(400, *TEXT_NUMBERS[one["To"]])
        if not re.fullmatch(r"\+[1-9]\d{3,14}", one["To"]):
            raise Refused(400, 21211, f"The 'To' number {one['To']} is not a valid phone number.")
        if one["From"] not in self.senders:
            raise Refused(400, 21606, f"The 'From' phone number {one['From']} is not a valid, message-capable number")
        if len(one["Body"]) > MOST_BODY:
            raise Refused(400, 21617, "The concatenated message body exceeds the 1600 character limit")
        if one["To"] in self.stopped:
            raise Refused(400, 21610, "Attempt to send to unsubscribed recipient")
        self.examine(form, MESSAGE_PARAMETERS)
        message = Message(self, form)
        with self.lock:
            self.messages.append(message)
        return message.resource()

    # What it sends.

    def reply(self, message, text, expect=200, signature=RIGHT):
        """Who got that message answers it; the TwiML that came back."""
        return self.text(message.to, text, message.sender, expect, signature)

    def text(self, sender, text, to=None, expect=200, signature=RIGHT):
        if text.strip().upper() in OPT_OUT:
            self.stopped.add(sender)
        if text.strip().upper() in OPT_IN:
            self.stopped.discard(sender)
        sid = "SM" + uuid.uuid4().hex
        form = {"AccountSid": self.account, "ApiVersion": "2010-04-01", "Body": text, "From": sender, "FromCity": "", "FromCountry": "IT",
                "MessageSid": sid, "NumMedia": "0", "NumSegments": "1", "SmsMessageSid": sid, "SmsSid": sid, "SmsStatus": "received",
                "To": to or self.senders[0], "ToCity": "", "ToCountry": "US"}
        post = self.post(self.text_url, form, "POST", expect, signature)
        return self.twiml_of(post, TEXT_VERBS) if expect == 200 else post

    def twiml_of(self, post, verbs):
        kind = post.content_type.split(";")[0].strip()
        if kind not in ("text/xml", "application/xml"):
            self.problems.append(f"12300: Content-Type {post.content_type} of the answer to {post.url}: {post.body!r}")
        return Twiml(post.body.decode(), verbs)

    def post(self, url, form, method="POST", expect=200, signature=RIGHT):
        """A signed request. `signature`: another one; None: none. `expect`: the status; 200: any that Twilio is content with; None: any."""
        assert method == "POST", "these tests do with POST"
        form = {name: value if isinstance(value, list) else [value] for name, value in form.items()}
        if signature is RIGHT:
            signature = sign(self.token, url if self.port_in_signature else without_port(url), form)
        return self.again(Post(url, form, signature), expect)

    def again(self, post, expect=200):
        """Sends that one, the same to the letter but for its idempotency token, as one that was not answered may be sent again."""
        post = dataclasses.replace(post, status=0, content_type="", body=b"")
        parts = urllib.parse.urlsplit(post.url)
        connection = (http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection)(parts.netloc, timeout=15)
        headers = {"Content-Type": FORM + "; charset=UTF-8", "User-Agent": "TwilioProxy/1.1", "Accept": "*/*", "Connection": "close",
                   "I-Twilio-Idempotency-Token": str(uuid.uuid4()), **({} if post.signature is None else {"X-Twilio-Signature": post.signature})}
        try:
            path = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
            connection.request("POST", path, urllib.parse.urlencode(post.form, doseq=True), headers)
            response = connection.getresponse()
            post.status, post.content_type, post.body = response.status, response.getheader("Content-Type", ""), response.read()
        finally:
            connection.close()
        self.posts.append(post)
        fine = expect is None or (post.status in (200, 204) if expect == 200 else post.status == expect)
        assert fine, f"{post.url} {post.form}: {post.status}, expected {expect}: {post.body[:500]!r}"
        return post


class Listener(http.server.ThreadingHTTPServer):
    request_queue_size = 200
    daemon_threads = True

    def __init__(self, twilio):
        self.twilio = twilio
        super().__init__(("127.0.0.1", twilio.port), Handler)

    def handle_error(self, request, address):
        pass  # who was called hung up


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        with self.server.twilio.lock:
            self.server.twilio.connections.add(self.connection)

    def finish(self):
        with self.server.twilio.lock:
            self.server.twilio.connections.discard(self.connection)
        super().finish()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.say(405, {"code": 20004, "message": "Method not allowed", "more_info": "https://www.twilio.com/docs/errors/20004", "status": 405})

    def do_POST(self):
        twilio = self.server.twilio
        headers = {name.lower(): value for name, value in self.headers.items()}
        if "content-length" not in headers:
            twilio.problems.append(f"no Content-Length: {headers}")
        body = self.rfile.read(int(headers.get("content-length", "0")))
        try:
            form = urllib.parse.parse_qs(body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), errors="strict")
        except ValueError as error:
            twilio.problems.append(f"not a form: {error}: {body!r}")
            form = {}
        request = Request(time.monotonic(), self.command, self.path, headers, form)
        with twilio.lock:
            twilio.requests.append(request)
            fault = twilio.faults.pop(0) if twilio.faults else None
        try:
            if fault and fault[0] == "fail":
                raise Refused(*fault[1:])
            resource = twilio.create(self.path, headers, form) if not fault or fault[1] else None
            if fault:
                if fault[0] == "hang":
                    twilio.over.wait()
                self.close_connection = True
                return
            request.status = 201
            self.say(201, resource)
        except Refused as refused:
            request.status = refused.status
            self.say(refused.status, refused.body, refused.headers)

    def say(self, status, body, headers=None):
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json;charset=utf-8", "Content-Length": str(len(content)), "X-API-Domain": "api.twilio.com",
                            "Twilio-Request-Id": "RQ" + uuid.uuid4().hex, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
