#!/usr/bin/env python3
"""What we sign, dkimpy accepts, and refuses once it is changed. Python is Debian's own, which has dkim and nacl."""

import os
import subprocess
import tempfile
import unittest

import dkim

SIGN = os.environ["SIGN"]

HEADERS = (b"From: a@example.org\r\nTo: b@example.net\r\nSubject: Hello\r\nDate: Wed, 31 Jul 2019 11:22:56 +0000\r\n"
           b"Message-ID: <1@example.org>\r\n")
MESSAGES = {
    "simple": HEADERS + b"\r\nHello\r\n",
    "no body": HEADERS + b"\r\n",
    "no empty line": HEADERS,
    "empty lines": HEADERS + b"\r\n\r\n\r\n\r\n",
    "empty lines at the end": HEADERS + b"\r\nHello\r\n\r\n \t\r\n\r\n",
    "no line end at the end": HEADERS + b"\r\nHello",
    "blanks": HEADERS + b"\r\n a  b\t c \t\r\n\t\r\n  \r\nx\r\n",
    "folded": b"Subject: a\r\n\tb\r\n  c  \r\nFROM:  A\r\n <a@example.org>\r\n\r\nx\r\n",
    "empty headers": b"From: a@example.org\r\nSubject:\r\nReply-To: \t\r\nCc:\r\n \t\r\n\r\nx\r\n",
    "tabs": b"From:\ta@example.org\t\r\nSubject:\t\ta\t\tb\r\n\r\n\tx\t\ty\r\n",
    "8-bit": "From: Grüße <ü@example.org>\r\nSubject: Grüße\r\n\r\nGrüße €\r\n".encode() + b"\xff\xfe\r\n",
    "repeated": b"From: a@example.org\r\nTo: x@y\r\nReceived: 1\r\nTo: z@y\r\nList-Id: <l>\r\nList-Id: <m>\r\n\r\nx\r\n",
    "long": b"From: a@example.org\r\nSubject: " + b"x" * 900 + b"\r\n\r\n" + b"y" * 100_000 + b"\r\n" + b"z " * 50_000 + b"\r\n",
    "many": b"From: a@example.org\r\n" + b"".join(b"List-X%d: %d\r\n" % (i, i) for i in range(200)) + b"\r\nx\r\n",
    "mime": HEADERS + b'MIME-Version: 1.0\r\nContent-Type: multipart/mixed;\r\n boundary="b"\r\n\r\n--b\r\n\r\nx\r\n--b--\r\n',
    "signed before": b"DKIM-Signature: v=1; a=rsa-sha256; b=x\r\n" + HEADERS + b"\r\nx\r\n",
}


class Dkim(unittest.TestCase):
    KINDS = {"rsa": ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "ed25519": ["ED25519"]}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        for kind, how in cls.KINDS.items():
            subprocess.run(["openssl", "genpkey", "-algorithm", *how, "-out", cls.key(kind)], check=True, capture_output=True)

    @classmethod
    def key(cls, kind):
        return os.path.join(cls.folder.name, kind + ".pem")

    def run_sign(self, kind, message=b"", *arguments):
        return subprocess.run([SIGN, self.key(kind), "example.org", "s1", *arguments], input=message, stdout=subprocess.PIPE,
                              check=True).stdout

    def verifies(self, kind, signed):
        record = self.run_sign(kind, b"", "record")

        def dns(name, timeout=5):
            return record if name.rstrip(b".") == b"s1._domainkey.example.org" else None

        return dkim.verify(signed, dnsfunc=dns)

    def test_what_is_signed_is_accepted(self):
        for kind in self.KINDS:
            for name, message in MESSAGES.items():
                with self.subTest(kind=kind, message=name):
                    signed = self.run_sign(kind, message)
                    self.assertTrue(signed.endswith(message))
                    header = signed[: len(signed) - len(message)]
                    self.assertTrue(all(len(line) <= 78 for line in header.split(b"\r\n")), header)
                    self.assertTrue(self.verifies(kind, signed))

    def test_what_is_changed_is_refused(self):
        for kind in self.KINDS:
            signed = self.run_sign(kind, MESSAGES["simple"])
            for old, new in ((b"Subject: Hello", b"Subject: hello"), (b"\r\n\r\nHello", b"\r\n\r\nHallo"),
                             (b"From: a", b"From: c"), (b"To: b", b"From: evil@example.com\r\nTo: b")):
                with self.subTest(kind=kind, new=new):
                    self.assertIn(old, signed)
                    self.assertFalse(self.verifies(kind, signed.replace(old, new)))

    def test_blanks_that_servers_change_do_not_count(self):
        for kind in self.KINDS:
            signed = self.run_sign(kind, MESSAGES["simple"]).replace(b"Subject: Hello", b"Subject:  Hello ")
            self.assertTrue(self.verifies(kind, signed + b"\r\n"))


if __name__ == "__main__":
    unittest.main()
