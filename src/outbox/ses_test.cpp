// What SES is asked for, read from JSON; and how errors are told.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "outbox/rendering.h"
#include "outbox/ses_answer.h"
#include "outbox/ses_requests.h"

namespace tabella::outbox {
namespace {

template <class T>
Checked<T> parsed_by(Checked<T> (*parse)(JsonValue), std::string_view json) {
  JsonDocument document;
  const auto value = document.parse(json);
  if (!value) return invalid("the test's JSON is wrong");
  return parse(*value);
}

std::string mistake_in_send(std::string_view json) {
  const auto email = parsed_by(&parse_send_email, json);
  return email ? "" : email.error().message;
}

TEST(SesSendEmail, ReadsASimpleEmail) {
  const auto email = parsed_by(&parse_send_email, R"({
    "FromEmailAddress": "\"Ann, A.\" <ann@example.com>",
    "Destination": {"ToAddresses": ["Bob <bob@example.com>"], "CcAddresses": ["c@example.com"],
                    "BccAddresses": ["d@example.com"]},
    "ReplyToAddresses": ["r@example.com"],
    "FeedbackForwardingEmailAddress": "f@example.com",
    "EmailTags": [{"Name": "campaign", "Value": "spring"}],
    "ConfigurationSetName": "news",
    "Content": {"Simple": {"Subject": {"Data": "Grüße"}, "Body": {"Text": {"Data": "t"}, "Html": {"Data": "<p>"}},
      "Headers": [{"Name": "X-One", "Value": "1"}],
      "Attachments": [{"FileName": "a.txt", "RawContent": "aGk=", "ContentType": "text/plain",
                       "ContentDisposition": "INLINE", "ContentId": "cid1"}]}}})");
  ASSERT_TRUE(email) << email.error().message;
  EXPECT_EQ(email->draft.from.name, "Ann, A.");
  EXPECT_EQ(email->draft.from.address, "ann@example.com");
  EXPECT_EQ(email->destination.size(), 3u);
  EXPECT_EQ(email->destination.to[0].name, "Bob");
  EXPECT_EQ(email->draft.reply_to[0].address, "r@example.com");
  EXPECT_EQ(email->bounces_to, "f@example.com");
  EXPECT_EQ(email->draft.subject, "Grüße");
  EXPECT_EQ(email->draft.text, "t");
  EXPECT_EQ(email->draft.html, "<p>");
  EXPECT_EQ(email->draft.headers[0].first, "X-One");
  ASSERT_EQ(email->draft.attachments.size(), 1u);
  EXPECT_EQ(email->draft.attachments[0].bytes, "hi");
  EXPECT_EQ(email->draft.attachments[0].disposition, "inline");
  EXPECT_EQ(email->labels, (SesLabels{{"campaign", "spring"}, {"ses:configuration-set", "news"}}));
}

TEST(SesSendEmail, ARawMessageNeedsNeitherSenderNorDestination) {
  const auto email =
      parsed_by(&parse_send_email, R"({"Content": {"Raw": {"Data": "VG86IGFAYi5jDQoNCg=="}}})");
  ASSERT_TRUE(email) << email.error().message;
  EXPECT_EQ(email->raw, "To: a@b.c\r\n\r\n");
}

TEST(SesSendEmail, TakesATemplateByNameByArnOrAsItIs) {
  const auto with = [](std::string_view used) {
    return parsed_by(
        &parse_send_email,
        fmt::format(R"({{"FromEmailAddress": "a@b.c", "Destination": {{"ToAddresses": ["d@e.f"]}},
                                     "Content": {{"Template": {}}}}})",
                    used));
  };
  EXPECT_EQ(with(R"({"TemplateName": "n", "TemplateData": "{\"a\":1}"})")->with_template->data, R"({"a":1})");
  EXPECT_EQ(with(R"({"TemplateArn": "arn:aws:ses:eu-west-1:1:template/n"})")->with_template->name, "n");
  EXPECT_EQ(with(R"({"TemplateContent": {"Subject": "s", "Text": "t"}})")->with_template->content.text, "t");
  EXPECT_EQ(with(R"({"TemplateName": "n", "TemplateData": "[1]"})").error().message,
            "Content.Template.TemplateData must be a JSON object, as text.");
  EXPECT_FALSE(with("{}"));
}

TEST(SesSendEmail, SaysWhichMemberIsWrong) {
  EXPECT_EQ(mistake_in_send("[]"), "The request must be a JSON object.");
  EXPECT_EQ(mistake_in_send("{}"), "Content must have one of Simple, Raw and Template.");
  EXPECT_EQ(mistake_in_send(R"({"Content": {"Simple": 1}})"), "Content.Simple must be an object.");
  EXPECT_EQ(mistake_in_send(R"({"Content": {"Simple": {"Subject": {}}}})"),
            "Content.Simple.Subject.Data is missing.");
  EXPECT_EQ(mistake_in_send(R"({"Content": {"Raw": {"Data": "?"}}})"),
            "Content.Raw.Data must be base64, with padding.");
  const std::string content =
      R"("Content": {"Simple": {"Subject": {"Data": "s"}, "Body": {"Text": {"Data": "t"}}}})";
  EXPECT_EQ(mistake_in_send("{" + content + "}"), "FromEmailAddress is missing.");
  EXPECT_EQ(mistake_in_send(R"({"FromEmailAddress": "a@b.c", )" + content + "}"),
            "Destination is missing, or has no recipients.");
  EXPECT_TRUE(mistake_in_send(R"({"FromEmailAddress": "nobody", )" + content + "}")
                  .starts_with("FromEmailAddress: \"nobody\" is not an email address"));
}

TEST(SesSendEmail, RefusesTooManyRecipients) {
  std::string to;
  for (int i = 0; i < 30; ++i) to += fmt::format("{}\"a{}@b.c\"", i ? "," : "", i);
  EXPECT_TRUE(mistake_in_send(fmt::format(R"({{"FromEmailAddress": "a@b.c",
      "Destination": {{"ToAddresses": [{0}], "BccAddresses": [{0}]}},
      "Content": {{"Simple": {{"Subject": {{"Data": "s"}}, "Body": {{"Text": {{"Data": "t"}}}}}}}}}})",
                                          to))
                  .starts_with("The email has 60 recipients"));
}

TEST(SesSendBulkEmail, OneThatIsWrongDoesNotKeepTheOthersFromBeingSent) {
  const auto bulk = parsed_by(&parse_send_bulk_email, R"({
    "FromEmailAddress": "a@b.c", "DefaultContent": {"Template": {"TemplateName": "n", "TemplateData": "{}"}},
    "BulkEmailEntries": [
      {"Destination": {"ToAddresses": ["x@y.z"]},
       "ReplacementEmailContent": {"ReplacementTemplate": {"ReplacementTemplateData": "{\"a\":1}"}}},
      {"Destination": {"ToAddresses": ["wrong"]}}, {}]})");
  ASSERT_TRUE(bulk) << bulk.error().message;
  ASSERT_EQ(bulk->entries.size(), 3u);
  EXPECT_EQ(bulk->entries[0]->data, R"({"a":1})");
  EXPECT_FALSE(bulk->entries[1]);
  EXPECT_EQ(bulk->entries[2].error().message,
            "BulkEmailEntries[2].Destination is missing, or has no recipients.");
}

TEST(SesTemplates, DataOfOneEmailGoesBeforeThatOfAll) {
  EXPECT_EQ(merge_template_data(R"({"a":1,"b":null})", R"({"a":2,"b":"x","c":[1.5,true,{"d":"\""}]})"),
            R"({"a":1,"b":"x","c":[1.5,true,{"d":"\""}]})");
  EXPECT_FALSE(merge_template_data("[]", "{}"));
}

TEST(Hostile, DataOfTemplatesIsMergedInTimeByItsSize) {
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += fmt::format("{}\"{}\":1", i ? "," : "", i);
  const auto object = "{" + many + "}";
  EXPECT_EQ(merge_template_data(object, object), object);
}

TEST(SesTemplates, AreNotFilledBeyondALimit) {
  mime::Draft draft;
  const EmailTemplate hello{.name = "n", .subject = "s", .text = "{{name}}{{name}}"};
  EXPECT_TRUE(render_into(draft, hello, R"({"name": "12345"})", 10));
  EXPECT_EQ(render_into(draft, hello, R"({"name": "123456"})", 10).error().message,
            "The template's text: The rendered template is longer than 10 bytes.");
}

TEST(SesTemplates, AreFilledOrRefusedByPart) {
  mime::Draft draft;
  const EmailTemplate hello{
      .name = "n", .subject = "Hi {{name}}", .text = "T {{name}}", .html = "<b>{{name}}"};
  ASSERT_TRUE(render_into(draft, hello, R"({"name": "Ann & Bob"})"));
  EXPECT_EQ(draft.subject, "Hi Ann & Bob");
  EXPECT_EQ(draft.html, "<b>Ann & Bob");
  const auto missing = render_into(draft, hello, "{}");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message.starts_with("The template's subject: "));
  EXPECT_FALSE(check_template({.name = "n", .subject = "s", .text = "{{#if a}}"}));
}

TEST(SesRequests, ReadTheSmallOnes) {
  EXPECT_EQ(parsed_by(&parse_put_suppressed_destination, R"({"EmailAddress": "a@b.c", "Reason": "BOUNCE"})")
                ->reason,
            "BOUNCE");
  EXPECT_FALSE(
      parsed_by(&parse_put_suppressed_destination, R"({"EmailAddress": "a@b.c", "Reason": "WHIM"})"));
  EXPECT_EQ(parsed_by(&parse_create_configuration_set, R"({"ConfigurationSetName": "news"})")->name, "news");
  EXPECT_FALSE(parsed_by(&parse_create_configuration_set,
                         R"({"ConfigurationSetName": "n", "SendingOptions": {"SendingEnabled": false}})"));
  EXPECT_FALSE(parsed_by(&parse_create_email_template,
                         R"({"TemplateName": "no/name", "TemplateContent": {"Subject": "s", "Text": "t"}})"));
}

TEST(SesAnswers, NameTheErrorInAHeader) {
  net::HttpResponse response;
  answer_ses(response, std::unexpected(SesError(Invalid{"Content is missing."})));
  EXPECT_EQ(response.status, 400);
  EXPECT_TRUE(response.headers.contains("x-amzn-ErrorType: BadRequestException\r\n"));
  EXPECT_TRUE(response.headers.contains("x-amzn-RequestId: "));
  EXPECT_EQ(response.body, R"({"message":"Content is missing."})");
}

}  // namespace
}  // namespace tabella::outbox
