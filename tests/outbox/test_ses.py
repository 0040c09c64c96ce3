"""Amazon SES v2's API, as boto3's client speaks it."""

import email
import email.policy
import json
import os
import subprocess
import sys
import unittest

import boto3
import botocore
import botocore.config
import botocore.exceptions

sys.path.insert(0, os.path.dirname(__file__))
from outbox_server import BINARY, OutboxServer, simple_email, wait_until


def client_of(server, key="any", secret="thing"):
    return boto3.client("sesv2", endpoint_url=f"http://127.0.0.1:{server.http}", region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret,
                        config=botocore.config.Config(retries={"max_attempts": 1}))


def text(subject="Hello", body="Hello."):
    return {"Simple": {"Subject": {"Data": subject}, "Body": {"Text": {"Data": body}}}}


class WithClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = OutboxServer()
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.__enter__()
        cls.ses = client_of(cls.server)

    def fails(self, name, operation, **parameters):
        """With that error, of which a sentence tells more."""
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            operation(**parameters)
        error = caught.exception.response
        self.assertEqual(error["Error"]["Code"], name)
        self.assertTrue(error["Error"]["Message"])
        return error["Error"]["Message"]

    def sent(self, identifier):
        """The message once it is sent, and what is known of it."""
        shown = self.server.wait_for(identifier, "SENT")
        return email.message_from_bytes(self.server.raw(identifier), policy=email.policy.default), shown

    def send(self, **more):
        return self.ses.send_email(**{"FromEmailAddress": "Shop <shop@example.com>", "Destination": {"ToAddresses": ["ann@example.org"]}, "Content": text(), **more})["MessageId"]


class SendEmail(WithClient):
    def test_simple(self):
        identifier = self.send(Destination={"ToAddresses": ["Änne <ann@example.org>"], "CcAddresses": ["bob@example.org"], "BccAddresses": ["eve@example.org"]},
                               ReplyToAddresses=["reply@example.com"], FeedbackForwardingEmailAddress="bounces@example.com",
                               Content={"Simple": {"Subject": {"Data": "Grüße", "Charset": "UTF-8"}, "Body": {"Text": {"Data": "Grüße"}, "Html": {"Data": "<p>Grüße</p>"}}}},
                               EmailTags=[{"Name": "campaign", "Value": "autumn"}])
        message, shown = self.sent(identifier)
        self.assertEqual((message["Subject"], message["Reply-To"], message["Bcc"]), ("Grüße", "reply@example.com", None))
        self.assertEqual(message["To"].addresses[0].display_name, "Änne")
        self.assertEqual([part.get_content().strip() for part in message.iter_parts()], ["Grüße", "<p>Grüße</p>"])
        self.assertEqual((shown["message"]["door"], shown["message"]["from"], shown["message"]["labels"]), ("ses", "bounces@example.com", {"campaign": "autumn"}))
        self.assertEqual([r["address"] for r in shown["message"]["recipients"]], ["ann@example.org", "bob@example.org", "eve@example.org"])
        caught = self.server.captured("subject:Grüße")
        self.assertEqual([(m["envelope"]["from"], m["envelope"]["to"]) for m in caught], [("bounces@example.com", ["ann@example.org", "bob@example.org", "eve@example.org"])])

    def test_raw(self):
        raw = b"From: a@example.com\r\nTo: b@example.org\r\nBcc: c@example.org\r\nSubject: raw\r\nMessage-ID: <own@example.com>\r\nDate: Wed, 31 Jul 2019 11:22:56 +0000\r\n\r\n.\r\nx\r\n"
        identifier = self.ses.send_email(Content={"Raw": {"Data": raw}})["MessageId"]
        _, shown = self.sent(identifier)
        self.assertEqual(self.server.raw(identifier), raw.replace(b"Bcc: c@example.org\r\n", b""))
        self.assertEqual([r["address"] for r in shown["message"]["recipients"]], ["b@example.org", "c@example.org"])
        _, shown = self.sent(self.send(Content={"Raw": {"Data": raw}}))
        self.assertEqual([r["address"] for r in shown["message"]["recipients"]], ["ann@example.org"])

    def test_what_is_wrong_is_a_bad_request(self):
        good = {"FromEmailAddress": "a@example.com", "Destination": {"ToAddresses": ["b@example.org"]}, "Content": text()}
        for wrong in ({"FromEmailAddress": "nobody"}, {"Destination": {"ToAddresses": ["nobody"]}}, {"Destination": {}}, {"Destination": {"ToAddresses": 51 * ["b@example.org"]}},
                      {"Content": {}}, {"Content": {**text(), "Raw": {"Data": b"x"}}}, {"Content": {"Simple": {"Subject": {"Data": "x"}, "Body": {}}}},
                      {"ReplyToAddresses": ["nobody"]}, {"EmailTags": [{"Name": "a b", "Value": "c"}]}, {"Content": {"Raw": {"Data": b""}}},
                      {"Content": {"Template": {"TemplateData": "{}"}}}, {"ListManagementOptions": {"ContactListName": "x"}}):
            with self.subTest(wrong=wrong):
                self.fails("BadRequestException", self.ses.send_email, **{**good, **wrong})
        without = {name: value for name, value in good.items() if name != "FromEmailAddress"}
        self.fails("BadRequestException", self.ses.send_email, **without)

    def test_header_injection(self):
        for evil in ("x\r\nBcc: evil@example.com", "x\nBcc: evil@example.com"):
            self.fails("BadRequestException", self.send, Content=text(subject=evil))
            named = f'"{evil}" <a@example.com>'
            for field in ({"FromEmailAddress": named}, {"ReplyToAddresses": [named]}, {"Destination": {"ToAddresses": [named]}}):
                try:
                    message, _ = self.sent(self.send(**field))
                except self.ses.exceptions.BadRequestException:
                    continue
                # A name may be put on one line; it stays a name.
                self.assertEqual((message["Bcc"], message["Subject"]), (None, "Hello"))

    def test_configuration_sets_become_labels(self):
        self.fails("NotFoundException", self.send, ConfigurationSetName="nowhere")
        self.ses.create_configuration_set(ConfigurationSetName="news", Tags=[{"Key": "a", "Value": "b"}])
        _, shown = self.sent(self.send(ConfigurationSetName="news", EmailTags=[{"Name": "a", "Value": "b"}]))
        self.assertEqual(shown["message"]["labels"], {"a": "b", "ses:configuration-set": "news"})

    def test_large_messages_come_whole(self):
        body = "".join(f"line {number}\r\n" for number in range(200_000))
        message, _ = self.sent(self.send(Content=text(body=body)))
        self.assertEqual(message.get_payload(decode=True).decode().split(), body.split())


class Templates(WithClient):
    CONTENT = {"Subject": "Hello, {{name}}", "Text": "{{#if gift}}A gift!{{else}}No gift.{{/if}}", "Html": "<p>{{name}}</p>"}

    def setUp(self):
        self.ses.create_email_template(TemplateName="hello", TemplateContent=self.CONTENT)
        self.addCleanup(self.ses.delete_email_template, TemplateName="hello")

    def test_are_kept_by_name(self):
        self.fails("AlreadyExistsException", self.ses.create_email_template, TemplateName="hello", TemplateContent=self.CONTENT)
        got = self.ses.get_email_template(TemplateName="hello")
        self.assertEqual((got["TemplateName"], got["TemplateContent"]), ("hello", self.CONTENT))
        self.ses.update_email_template(TemplateName="hello", TemplateContent={"Subject": "Bye", "Text": "x"})
        self.assertEqual(self.ses.get_email_template(TemplateName="hello")["TemplateContent"], {"Subject": "Bye", "Text": "x"})
        for operation, more in ((self.ses.get_email_template, {}), (self.ses.delete_email_template, {}), (self.ses.update_email_template, {"TemplateContent": self.CONTENT}),
                                (self.ses.test_render_email_template, {"TemplateData": "{}"})):
            self.fails("NotFoundException", operation, TemplateName="nowhere", **more)
        for name, content in (("a b", self.CONTENT), ("x" * 65, self.CONTENT), ("open", {"Subject": "{{#if}}", "Text": "x"}), ("open", {"Subject": "x"})):
            self.fails("BadRequestException", self.ses.create_email_template, TemplateName=name, TemplateContent=content)

    def test_are_listed_page_by_page(self):
        names = [f"page{number:02}" for number in range(7)]
        for name in names:
            self.ses.create_email_template(TemplateName=name, TemplateContent=self.CONTENT)
        seen, more = [], {}
        while True:
            page = self.ses.list_email_templates(PageSize=3, **more)
            self.assertLessEqual(len(page["TemplatesMetadata"]), 3)
            seen += [one["TemplateName"] for one in page["TemplatesMetadata"]]
            self.assertTrue(all(one["CreatedTimestamp"].year >= 2024 for one in page["TemplatesMetadata"]))
            if "NextToken" not in page:
                break
            more = {"NextToken": page["NextToken"]}
        self.assertEqual(sorted(seen), sorted(["hello", *names]))
        for name in names:
            self.ses.delete_email_template(TemplateName=name)
        self.fails("BadRequestException", self.ses.list_email_templates, PageSize=0)

    def test_are_rendered(self):
        rendered = self.ses.test_render_email_template(TemplateName="hello", TemplateData='{"name": "Ann", "gift": true}')["RenderedTemplate"]
        message = email.message_from_string(rendered, policy=email.policy.default)
        self.assertEqual(message["Subject"], "Hello, Ann")
        self.assertEqual([part.get_content().strip() for part in message.iter_parts()], ["A gift!", "<p>Ann</p>"])
        self.assertIn("name", self.fails("BadRequestException", self.ses.test_render_email_template, TemplateName="hello", TemplateData="{}"))
        self.fails("BadRequestException", self.ses.test_render_email_template, TemplateName="hello", TemplateData="[]")

    def test_are_sent(self):
        identifier = self.send(Content={"Template": {"TemplateName": "hello", "TemplateData": '{"name": "Ann"}'}})
        message, _ = self.sent(identifier)
        self.assertEqual(message["Subject"], "Hello, Ann")
        self.assertEqual([part.get_content().strip() for part in message.iter_parts()], ["No gift.", "<p>Ann</p>"])
        self.fails("NotFoundException", self.send, Content={"Template": {"TemplateName": "nowhere", "TemplateData": "{}"}})
        self.fails("BadRequestException", self.send, Content={"Template": {"TemplateName": "hello", "TemplateData": "{}"}})
        self.fails("BadRequestException", self.send, Content={"Template": {"TemplateName": "hello", "TemplateData": "nonsense"}})
        self.fails("BadRequestException", self.send, Content={"Template": {"TemplateName": "hello", "TemplateData": '{"name": "x\\r\\nBcc: evil@example.com"}'}})

    def test_are_sent_in_bulk(self):
        def entry(address, **data):
            return {"Destination": {"ToAddresses": [address]}, "ReplacementTags": [{"Name": "of", "Value": "one"}],
                    "ReplacementEmailContent": {"ReplacementTemplate": {"ReplacementTemplateData": json.dumps(data)}}}

        bulk = {"FromEmailAddress": "shop@example.com", "DefaultContent": {"Template": {"TemplateName": "hello", "TemplateData": '{"name": "friend", "gift": true}'}},
                "DefaultEmailTags": [{"Name": "of", "Value": "all"}, {"Name": "in", "Value": "bulk"}]}
        results = self.ses.send_bulk_email(**bulk, BulkEmailEntries=[
            entry("ann@example.org", name="Ann"), entry("bob@example.org"), entry("nobody"), entry("eve@example.org", name="x\r\nBcc: evil@example.com"),
            entry("dan@example.org", gift=False)])["BulkEmailEntryResults"]
        self.assertEqual([one["Status"] for one in results], ["SUCCESS", "SUCCESS", "INVALID_PARAMETER", "INVALID_PARAMETER", "SUCCESS"])
        self.assertTrue(all(("MessageId" in one) == (one["Status"] == "SUCCESS") for one in results))
        said = []
        for index in (0, 1, 4):
            message, shown = self.sent(results[index]["MessageId"])
            said.append((message["To"], message["Subject"], next(message.iter_parts()).get_content().strip()))
            self.assertEqual(shown["message"]["labels"], {"of": "one", "in": "bulk"})
        self.assertEqual(said, [("ann@example.org", "Hello, Ann", "A gift!"), ("bob@example.org", "Hello, friend", "A gift!"), ("dan@example.org", "Hello, friend", "No gift.")])
        bulk["DefaultContent"]["Template"]["TemplateName"] = "nowhere"
        results = self.ses.send_bulk_email(**bulk, BulkEmailEntries=[entry("ann@example.org"), entry("bob@example.org")])["BulkEmailEntryResults"]
        self.assertEqual([one["Status"] for one in results], 2 * ["TEMPLATE_NOT_FOUND"])
        self.fails("BadRequestException", self.ses.send_bulk_email, **bulk, BulkEmailEntries=[])
        self.fails("BadRequestException", self.ses.send_bulk_email, **bulk, BulkEmailEntries=51 * [entry("ann@example.org")])


class Account(WithClient):
    def test_says_whether_it_sends(self):
        account = self.ses.get_account()
        self.assertEqual((account["SendingEnabled"], account["ProductionAccessEnabled"], account["EnforcementStatus"]), (True, True, "HEALTHY"))
        self.assertEqual(account["SuppressionAttributes"]["SuppressedReasons"], ["BOUNCE", "COMPLAINT"])
        self.server.call("PUT", "/outbox/pauses/*")
        self.assertFalse(self.ses.get_account()["SendingEnabled"])
        self.server.call("DELETE", "/outbox/pauses/*")
        wait_until(lambda: self.ses.get_account()["SendingEnabled"])

    def test_configuration_sets(self):
        for name in ("one", "two"):
            self.ses.create_configuration_set(ConfigurationSetName=name)
        self.fails("AlreadyExistsException", self.ses.create_configuration_set, ConfigurationSetName="one")
        self.assertEqual(self.ses.get_configuration_set(ConfigurationSetName="one")["ConfigurationSetName"], "one")
        first = self.ses.list_configuration_sets(PageSize=1)
        second = self.ses.list_configuration_sets(PageSize=1, NextToken=first["NextToken"])
        self.assertEqual(first["ConfigurationSets"] + second["ConfigurationSets"], ["one", "two"])
        self.ses.delete_configuration_set(ConfigurationSetName="one")
        self.assertEqual(self.ses.list_configuration_sets()["ConfigurationSets"], ["two"])
        for operation in (self.ses.get_configuration_set, self.ses.delete_configuration_set):
            self.fails("NotFoundException", operation, ConfigurationSetName="one")
        self.fails("BadRequestException", self.ses.create_configuration_set, ConfigurationSetName="a b")
        self.fails("BadRequestException", self.ses.create_configuration_set, ConfigurationSetName="quiet", SendingOptions={"SendingEnabled": False})

    def test_what_is_not_served_is_not_found(self):
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            self.ses.list_contact_lists()
        self.assertEqual(caught.exception.response["ResponseMetadata"]["HTTPStatusCode"], 404)


class Suppression(WithClient):
    def test_one_list_for_both_doors(self):
        self.ses.put_suppressed_destination(EmailAddress="Gone+1@Example.org", Reason="BOUNCE")
        self.ses.put_suppressed_destination(EmailAddress="angry@example.org", Reason="COMPLAINT")
        got = self.ses.get_suppressed_destination(EmailAddress="gone+1@example.org")["SuppressedDestination"]
        self.assertEqual((got["EmailAddress"].lower(), got["Reason"]), ("gone+1@example.org", "BOUNCE"))
        self.assertEqual({one["address"]: one["reason"] for one in self.server.call("GET", "/outbox/suppression")["addresses"]},
                         {"gone+1@example.org": "BOUNCE", "angry@example.org": "COMPLAINT"})
        shown = self.server.wait_for(self.send(Destination={"ToAddresses": ["gone+1@example.org"]}))
        self.assertEqual((shown["status"], shown["message"]["recipients"][0]["result"]), ("FAILED", "suppressed"))
        listed = self.ses.list_suppressed_destinations(Reasons=["COMPLAINT"])["SuppressedDestinationSummaries"]
        self.assertEqual([one["EmailAddress"] for one in listed], ["angry@example.org"])
        both = self.ses.list_suppressed_destinations(Reasons=["COMPLAINT", "BOUNCE"])["SuppressedDestinationSummaries"]
        self.assertEqual(len(both), 2)
        now = both[0]["LastUpdateTime"]
        self.assertEqual(self.ses.list_suppressed_destinations(EndDate=now.replace(year=now.year - 1))["SuppressedDestinationSummaries"], [])
        self.assertEqual(len(self.ses.list_suppressed_destinations(StartDate=now.replace(year=now.year - 1))["SuppressedDestinationSummaries"]), 2)
        first = self.ses.list_suppressed_destinations(PageSize=1)
        second = self.ses.list_suppressed_destinations(PageSize=1, NextToken=first["NextToken"])
        self.assertEqual({page["SuppressedDestinationSummaries"][0]["EmailAddress"] for page in (first, second)}, {"gone+1@example.org", "angry@example.org"})
        self.ses.delete_suppressed_destination(EmailAddress="gone+1@example.org")
        for operation in (self.ses.get_suppressed_destination, self.ses.delete_suppressed_destination):
            self.fails("NotFoundException", operation, EmailAddress="gone+1@example.org")
        self.fails("BadRequestException", self.ses.put_suppressed_destination, EmailAddress="nobody", Reason="BOUNCE")
        self.fails("BadRequestException", self.ses.put_suppressed_destination, EmailAddress="a@example.org", Reason="WHIM")
        self.sent(self.send(Destination={"ToAddresses": ["gone+1@example.org"]}))


class Keys(unittest.TestCase):
    def test_requests_are_signed_by_a_key(self):
        with OutboxServer("--access-key", "AKIDEXAMPLE:secret") as server:
            subprocess.run([BINARY, "token", "create", "--name", "x", "--scope", "mail:read", "--data", server.folder.name], capture_output=True, check=True,
                           env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"})
            wait_until(lambda: server.request("GET", "/outbox/counts")[0].status == 401)
            email_of = {"FromEmailAddress": "a@example.com", "Destination": {"ToAddresses": ["b@example.org"]}, "Content": text()}
            identifier = client_of(server, "AKIDEXAMPLE", "secret").send_email(**email_of)["MessageId"]
            self.assertTrue(identifier)
            for key, secret in (("AKIDEXAMPLE", "wrong"), ("AKIDOTHER", "secret")):
                with self.assertRaises(botocore.exceptions.ClientError) as caught:
                    client_of(server, key, secret).send_email(**email_of)
                self.assertIn(caught.exception.response["ResponseMetadata"]["HTTPStatusCode"], (401, 403))
            self.assertEqual(server.request("POST", "/v2/email/outbound-emails", json.dumps(simple_email()))[0].status, 401)


if __name__ == "__main__":
    unittest.main(verbosity=2)
