"""Another program, which knows nothing but the tables and the statements of the outbox that Tabella's was made after, works
on the same tables beside Tabella: on DynamoDB's through boto3, on MySQL's through pymysql. Neither breaks the other."""

import collections
import datetime
import email.message
import email.parser
import json
import os
import random
import smtplib
import sys
import tempfile
import threading
import time
import unittest
import uuid

import boto3
from botocore.exceptions import ClientError

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
sys.path.insert(0, os.path.dirname(__file__))
from mariadb import Mariadb
from outbox_process import OutboxProcess
from server import Server, free_port, wait_until
from sink import Sink

META = "_META"
TABLE = "tabella-outbox"
PATH_TO_SENT = ["ACCEPTED", "INTAKING", "READY", "PROCESSING", "SENT"]
OURS, OTHERS = 60, 120  # emails that are accepted by each


class Email:
    def __init__(self, id, eml_file_path="", payload_file_path="", ttl=None, status="ACCEPTED"):
        self.id, self.status, self.eml_file_path, self.payload_file_path, self.ttl = id, status, eml_file_path, payload_file_path, ttl


class DynamodbTables:
    """The statements for DynamoDB."""

    def __init__(self, endpoint):
        self.client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")

    def attributes(self, email, reason, legacy=False, **more):
        texts = {"EmlFilePath": email.eml_file_path, "PayloadFilePath": email.payload_file_path, "UpdatedAt": now(), "Reason": reason, **more}
        numbers = {"TTL": {"N": str(email.ttl)}} if legacy else {}
        return {"M": {**{name: {"S": text} for name, text in texts.items()}, **numbers}}

    def insert(self, id, status, attributes, ttl):
        given = [{"S": id}, {"S": status}, attributes] + ([{"N": str(ttl)}] if ttl else [])
        row = "'Id': ?, 'Status': ?, 'Attributes': ?" + (", 'TTL': ?" if ttl else "")
        return {"Statement": f'INSERT INTO "{TABLE}" VALUE {{{row}}}', "Parameters": given}

    def accept(self, email, legacy=False):
        """A legacy program has the TTL among the attributes."""
        ttl = None if legacy else email.ttl
        self.client.execute_transaction(TransactStatements=[
            self.insert(email.id, META, self.attributes(email, "", legacy, Latest=email.status), ttl),
            self.insert(email.id, email.status, self.attributes(email, "", legacy), ttl)])

    def read(self, status):
        """Up to 25 of a state."""
        emails, page = [], {}
        while len(emails) < 25:
            found = self.client.execute_statement(Statement=f'SELECT Id, Status, Attributes, TTL FROM "{TABLE}"."StatusIndex" WHERE Status=? AND Attributes.Latest =?',
                                                  Parameters=[{"S": META}, {"S": status}], Limit=25, **page)
            for item in found["Items"]:
                attributes = item["Attributes"]["M"]
                ttl = item.get("TTL") or attributes.get("TTL")
                emails.append(Email(item["Id"]["S"], attributes.get("EmlFilePath", {}).get("S", ""), attributes.get("PayloadFilePath", {}).get("S", ""),
                                    int(ttl["N"]) if ttl else None, status))
            if not found.get("NextToken"):
                break
            page = {"NextToken": found["NextToken"]}
        return emails[:25]

    def move(self, email, status, reason=""):
        """False: the lock was not acquired, somebody else has put the state's row there."""
        given = [{"S": status}, {"S": now()}, {"S": reason}] + ([{"N": str(email.ttl)}] if email.ttl else []) + [{"S": email.id}, {"S": META}]
        update = {"Statement": f'UPDATE "{TABLE}" SET Attributes.Latest=?, Attributes.UpdatedAt=?, Attributes.Reason=?{", TTL=?" if email.ttl else ""} WHERE Id=? AND Status=?',
                  "Parameters": given}
        try:
            self.client.execute_transaction(TransactStatements=[update, self.insert(email.id, status, self.attributes(email, reason), email.ttl)])
        except ClientError as error:
            codes = [reason["Code"] for reason in error.response.get("CancellationReasons", [])]
            if "DuplicateItem" in codes or "TransactionConflict" in codes:
                return False
            raise
        email.status = status
        return True

    def rows(self, id):
        return {item["Status"]["S"]: item for item in self.client.query(
            TableName=TABLE, ConsistentRead=True, KeyConditionExpression="Id = :id", ExpressionAttributeValues={":id": {"S": id}})["Items"]}

    def status(self, id):
        return self.rows(id)[META]["Attributes"]["M"]["Latest"]["S"]

    def check_history(self, test, id):
        rows = self.rows(id)
        test.assertEqual(sorted(rows), sorted([META, *PATH_TO_SENT]), id)
        times = [rows[state]["Attributes"]["M"]["UpdatedAt"]["S"] for state in PATH_TO_SENT]
        test.assertEqual([parse_time(each) for each in times], sorted(parse_time(each) for each in times), id)
        test.assertEqual(rows[META]["Attributes"]["M"]["Latest"]["S"], "SENT", id)
        test.assertEqual(len({row.get("TTL", {}).get("N") for row in rows.values()}), 1, f"{id}: rows that go at different times")

    def close(self):
        self.client.close()


class MysqlTables:
    """The statements for MySQL."""

    def __init__(self, connection):
        self.connection = connection

    def accept(self, email):
        with self.connection.cursor() as cursor:
            cursor.execute("INSERT INTO emails (id, status, eml_file_path, payload_file_path, reason) VALUES (%s, %s, %s, %s, '')",
                           (email.id, email.status, email.eml_file_path or None, email.payload_file_path or None))
            cursor.execute("INSERT INTO email_statuses (email_id, status, reason) VALUES (%s, %s, '')", (email.id, email.status))
        self.connection.commit()

    def read(self, status):
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT id, status, eml_file_path, payload_file_path, reason, version, updated_at FROM emails WHERE status = %s "
                           "ORDER BY updated_at ASC LIMIT %s FOR UPDATE SKIP LOCKED", (status, 25))
            found = cursor.fetchall()
        self.connection.commit()
        return [Email(row[0], row[2] or "", row[3] or "", status=row[1]) for row in found]

    def move(self, email, status, reason=""):
        with self.connection.cursor() as cursor:
            moved = cursor.execute("UPDATE emails SET status = %s, reason = %s, version = version + 1 WHERE id = %s AND status = %s",
                                   (status, reason, email.id, email.status))
            if not moved:
                self.connection.rollback()
                return False
            cursor.execute("INSERT INTO email_statuses (email_id, status, reason) VALUES (%s, %s, %s)", (email.id, status, reason))
        self.connection.commit()
        email.status = status
        return True

    def fetch(self, statement, id):
        with self.connection.cursor() as cursor:
            cursor.execute(statement, (id,))
            found = cursor.fetchall()
        self.connection.commit()
        return found

    def status(self, id):
        return self.fetch("SELECT status FROM emails WHERE id = %s", id)[0][0]

    def check_history(self, test, id):
        history = [row[0] for row in self.fetch("SELECT status FROM email_statuses WHERE email_id = %s ORDER BY id", id)]
        test.assertEqual(history, PATH_TO_SENT, id)
        test.assertEqual(self.fetch("SELECT status, version FROM emails WHERE id = %s", id), (("SENT", len(history)),), "every move counts the version up")

    def close(self):
        self.connection.close()


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text):
    return datetime.datetime.fromisoformat(text)


class Program(threading.Thread):
    """Takes in and sends what it finds, until it is stopped."""

    def __init__(self, tables, sink, stop):
        super().__init__()
        self.tables, self.sink, self.stop = tables, sink, stop
        self.sent, self.lost_locks = [], 0
        self.failure = None

    def run(self):
        try:
            while not self.stop.is_set():
                # One after the other, from the middle: two that both begin with the oldest only get into each other's way.
                for email in random.sample(found := self.tables.read("ACCEPTED"), min(3, len(found))):
                    self.take_in(email)
                for email in random.sample(found := self.tables.read("READY"), min(3, len(found))):
                    self.send(email)
                time.sleep(0.01)
        except Exception as failure:
            self.failure = failure
        self.tables.close()

    def move(self, email, status, reason=""):
        moved = self.tables.move(email, status, reason)
        self.lost_locks += not moved
        return moved

    def take_in(self, email):
        # Its statements cannot set the path of the message, so whoever accepts an email for it has to.
        if email.eml_file_path and self.move(email, "INTAKING"):
            compose(email)
            assert self.tables.move(email, "READY"), "it had it"

    def send(self, email):
        if not self.move(email, "PROCESSING"):
            return
        with open(email.eml_file_path, "rb") as file:
            message = email_parser.parse(file)
        with smtplib.SMTP("127.0.0.1", self.sink.port) as client:
            client.send_message(message)
        assert self.tables.move(email, "SENT", "sent by the other program"), "it had it"
        self.sent.append(email.id)


email_parser = email.parser.BytesParser()


def compose(row):
    with open(row.payload_file_path) as file:
        payload = json.load(file)
    message = email.message.EmailMessage()
    message["From"], message["To"], message["Subject"] = payload["from"], payload["to"], payload["subject"]
    message.set_content(payload["body_text"])
    with open(row.eml_file_path, "wb") as file:
        file.write(bytes(message))


class Shared:
    """What holds for both kinds of tables."""

    def setUp(self):
        self.folder = os.path.realpath(self.enterContext(tempfile.TemporaryDirectory(prefix="tabella-foreign-")))
        self.files = os.path.join(self.folder, "files")
        os.mkdir(self.files)
        self.sink = self.enterContext(Sink(free_port()))
        self.process = self.enterContext(OutboxProcess(
            *self.where(), "--outbox-folder", self.files, "--outbox-stale", "3s", "--outbox-retry-first", "200ms", "--outbox-mode", "relay",
            "--outbox-relay", f"smtp://127.0.0.1:{self.sink.port}?tls=off", log=os.path.join(self.folder, "log")))
        self.tables = self.open_tables()
        self.addCleanup(self.tables.close)

    def new_email(self, to=None, **more):
        """With a payload of its own, as a file."""
        id = str(uuid.uuid4())
        payload = os.path.join(self.files, f"{id}.payload.json")
        with open(payload, "w") as file:
            json.dump(self.payload(id, to), file)
        return Email(id, payload_file_path=payload, **more)

    def payload(self, id, to=None):
        return {"id": id, "from": "shop@example.com", "to": to or f"{id}@example.com", "subject": id, "body_text": "Hello."}

    def wait_until_sent(self, ids, seconds=60):
        waiting = set(ids)

        def is_over():
            waiting.difference_update([id for id in waiting if self.tables.status(id) == "SENT"])
            return not waiting

        try:
            wait_until(is_over, seconds)
        except AssertionError:
            self.fail(f"{len(waiting)} still under way: {[self.process.email(id) for id in list(waiting)[:3]]}")

    def check_sent_once(self, ids):
        self.assertEqual(self.sink.taken, collections.Counter({(id, f"{id}@example.com"): 1 for id in ids}))

    def test_neither_breaks_the_other(self):
        stop = threading.Event()
        programs = [Program(self.open_tables(), self.sink, stop) for _ in range(2)]
        for program in programs:
            program.start()
        ids = []
        try:
            for number in range(OTHERS):
                row = self.new_email(ttl=int(time.time()) + 86_400)
                if number % 4:
                    row.eml_file_path = os.path.join(self.files, f"{row.id}.eml")
                self.tables.accept(row)
                ids.append(row.id)
                if number % (OTHERS // OURS) == 0:
                    id = str(uuid.uuid4())
                    self.process.call("POST", "/outbox/emails", {"data": [self.payload(id)]})
                    ids.append(id)
            self.wait_until_sent(ids)
        finally:
            stop.set()
            for program in programs:
                program.join()
        for program in programs:
            if program.failure:
                raise program.failure
        self.check_sent_once(ids)
        others = {id for program in programs for id in program.sent}
        for id in ids:
            self.tables.check_history(self, id)
            life = self.process.email(id)
            self.assertEqual(life["status"], "SENT")
            self.assertEqual([step["status"] for step in life["history"]], PATH_TO_SENT, life)
            self.assertEqual([attempt["outcome"] for attempt in life["attempts"]], [] if id in others else ["delivered"], life)
        self.assertTrue(0 < len(others) < len(ids), f"{len(others)} of {len(ids)}: one of the two had nothing to do")
        print(f"{self.name}: {len(ids)} emails, {len(others)} of them sent by the other program, each once; it came second {sum(p.lost_locks for p in programs)} times",
              file=sys.stderr)

    def test_emails_of_others_are_noticed_and_carried_on(self):
        accepted, ready = self.new_email(), self.new_email(status="READY")
        ready.eml_file_path = os.path.join(self.files, f"{ready.id}.other.eml")
        compose(ready)
        for row in (accepted, ready):
            self.tables.accept(row)
        self.wait_until_sent([accepted.id, ready.id], 45)
        self.check_sent_once([accepted.id, ready.id])
        self.tables.check_history(self, accepted.id)

    def test_an_email_of_others_that_was_put_off_is_still_whose_it_was(self):
        ready = self.new_email(to="later@example.com", status="READY")
        ready.eml_file_path = os.path.join(self.files, f"{ready.id}.other.eml")
        compose(ready)
        self.tables.accept(ready)
        self.wait_until_sent([ready.id], 45)
        self.assertEqual(self.sink.senders, {(ready.id, "later@example.com"): "shop@example.com"})
        life = self.process.email(ready.id)
        self.assertEqual((life["message"]["from"], life["message"]["subject"]), ("shop@example.com", ready.id))
        self.assertEqual([attempt["outcome"] for attempt in life["attempts"]], ["deferred", "delivered"])

    def test_an_email_whose_payload_is_bad_is_invalid(self):
        wrong, outside = self.new_email(), Email(str(uuid.uuid4()), payload_file_path="/etc/passwd")
        with open(wrong.payload_file_path, "w") as file:
            file.write("{")
        for row in (wrong, outside):
            self.tables.accept(row)
        wait_until(lambda: {self.tables.status(row.id) for row in (wrong, outside)} == {"INVALID"}, 45)

    def test_what_a_program_took_and_left_is_taken_over(self):
        taken_in, taken = self.new_email(status="INTAKING"), self.new_email(status="PROCESSING")
        taken.eml_file_path = os.path.join(self.files, f"{taken.id}.eml")
        compose(taken)
        for row in (taken_in, taken):
            self.tables.accept(row)
        time.sleep(1.5)
        self.assertEqual(self.sink.taken, {}, "its time was not over")
        self.wait_until_sent([taken_in.id, taken.id], 30)
        self.check_sent_once([taken_in.id, taken.id])
        # Whether the other program had sent it is not known.
        self.assertEqual([(attempt["outcome"], attempt["repeated"]) for attempt in self.process.email(taken.id)["attempts"]], [("unknown", False), ("delivered", True)])

    def test_what_was_accepted_while_nobody_ran_is_carried_on(self):
        self.process.end()
        row = self.new_email()
        self.tables.accept(row)
        self.process.start()
        self.wait_until_sent([row.id], 30)
        self.check_sent_once([row.id])


class Dynamodb(Shared, unittest.TestCase):
    name = "DynamoDB"

    def where(self):
        self.store = self.enterContext(Server(folder=os.path.join(self.folder, "store")))
        return ["--store", self.store.endpoint, "--create-tables"]

    def open_tables(self):
        return DynamodbTables(self.store.endpoint)

    def test_a_legacy_time_to_live_is_read(self):
        row = self.new_email(ttl=int(time.time()) + 86_400)
        self.tables.accept(row, legacy=True)
        self.wait_until_sent([row.id], 45)
        rows = self.tables.rows(row.id)
        self.assertEqual({rows[state]["TTL"]["N"] for state in (META, *PATH_TO_SENT[1:])}, {str(row.ttl)})


class Mysql(Shared, unittest.TestCase):
    name = "MySQL"

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Mariadb())

    def where(self):
        self.database = f"outbox_{uuid.uuid4().hex}"
        return ["--data", os.path.join(self.folder, "data"), "--dynamodb", f"127.0.0.1:{free_port()}", "--outbox-database", self.server.make(self.database)]

    def open_tables(self):
        return MysqlTables(self.server.connect(self.database))


if __name__ == "__main__":
    unittest.main(verbosity=2)
