#include "handlebars/template.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tabella::handlebars {
namespace {

constexpr std::string_view kTemplateData =
    R"({"name": "Ann <a@x>", "contact": {"first": "Anaya", "city": null},
  "interests": ["Sports", "Travel"], "orders": [{"id": 7, "lines": ["x", "y"]}, {"id": 8, "lines": []}],
  "map": {"k": "v", "l": 2}, "zero": 0, "no": false, "yes": true, "empty": [], "blank": "", "price": 1.50,
  "large": 18446744073709551615, "tiny": 0.00001, "two words": "2"})";

std::string rendered(std::string_view text, size_t most = 10'000, std::string_view data = kTemplateData) {
  JsonDocument document;
  const auto parsed = Template::parse(text);
  if (!parsed) return parsed.error().message;
  const auto result = parsed->render(*document.parse(data), most);
  return result ? *result : result.error().message;
}

TEST(Templates, ShowValuesByTheirPaths) {
  EXPECT_EQ(rendered("Hi {{ name }}, {{contact.first}}{{contact/first}}{{this.contact.first}}!"),
            "Hi Ann <a@x>, AnayaAnayaAnaya!");
  EXPECT_EQ(rendered("{{interests.[1]}} {{interests.0}} {{interests.length}} {{[two words]}} {{@root.zero}}"),
            "Travel Sports 2 2 0");
  EXPECT_EQ(rendered("{{price}} {{large}} {{tiny}} {{yes}} {{no}} [{{contact.city}}] {{interests}} {{map}}"),
            "1.5 18446744073709551615 0.00001 true false [] Sports,Travel [object Object]");
}

TEST(Templates, EscapeNothing) {
  EXPECT_EQ(rendered("{{name}} {{{name}}} {{&name}}"), "Ann <a@x> Ann <a@x> Ann <a@x>");
}

TEST(Templates, RefuseWhatIsNotInTheData) {
  EXPECT_EQ(rendered("{{nam}}"), "Attribute 'nam' is not present in the rendering data.");
  EXPECT_EQ(rendered("{{contact.last}}"), "Attribute 'contact.last' is not present in the rendering data.");
  EXPECT_EQ(rendered("{{#each list}}{{/each}}"), "Attribute 'list' is not present in the rendering data.");
  EXPECT_EQ(rendered("{{@index}}"), "Attribute '@index' is not present in the rendering data.");
  EXPECT_EQ(
      rendered(
          "{{#if nam}}a{{else}}b{{/if}}{{#unless nam}}c{{/unless}}{{#with nam}}d{{/with}}{{#nam}}e{{/nam}}"),
      "bc");
}

TEST(Templates, Choose) {
  EXPECT_EQ(
      rendered("{{#if yes}}a{{else}}b{{/if}}{{#if zero}}c{{else if no}}d{{else if name}}e{{else}}f{{/if}}"),
      "ae");
  EXPECT_EQ(rendered("{{#if empty}}a{{^}}b{{/if}}{{#if blank}}c{{/if}}{{#if zero includeZero=true}}d{{/if}}"),
            "bd");
  EXPECT_EQ(
      rendered(
          "{{#unless no}}a{{/unless}}{{^empty}}b{{/empty}}{{#map}}{{k}}{{/map}}{{#yes}}{{zero}}{{/yes}}"),
      "abv0");
}

TEST(Templates, Repeat) {
  EXPECT_EQ(rendered("{{#each interests}}{{@index}}{{@first}}{{@last}}{{this}};{{/each}}"),
            "0truefalseSports;1falsetrueTravel;");
  EXPECT_EQ(rendered("{{#each map}}{{@key}}={{.}},{{/each}}{{#each empty}}a{{else}}none{{/each}}"),
            "k=v,l=2,none");
  EXPECT_EQ(rendered("{{#each orders}}{{id}}:{{#each lines}}{{../id}}{{this}}{{@../index}}{{../../zero}} "
                     "{{/each}}{{/each}}"),
            "7:7x00 7y00 8:");
  EXPECT_EQ(rendered("{{#each orders as |order i|}}{{#each order.lines as |line|}}{{i}}{{order.id}}{{line}} "
                     "{{/each}}{{/each}}"),
            "07x 07y ");
  EXPECT_EQ(rendered("{{#interests}}{{this}} {{/interests}}{{#with contact}}{{first}}{{/with}}"),
            "Sports Travel Anaya");
  EXPECT_EQ(rendered("{{#each orders}}{{lookup ../interests @index}} {{/each}}"), "Sports Travel ");
}

TEST(Templates, HaveInlinePartials) {
  // From Amazon's guide.
  EXPECT_EQ(rendered("{{#* inline \"fullName\"}}{{first}}{{#if last}} {{last}}{{/if}}{{/inline}}\n"
                     "Hello {{> fullName contact}}! {{#with contact}}{{> fullName first='Over'}}{{/with}}"),
            "\nHello Anaya! Over");
  EXPECT_EQ(rendered("{{> nobody}}"), "The partial nobody could not be found.");
  EXPECT_EQ(rendered("{{#*inline 'x'}}\na\nb\n{{/inline}}\nc\n  {{> x}}\nd"), "c\n  a\n  b\nd");
}

TEST(Templates, LeaveNoTraceOfLinesWithBlocksAlone) {
  EXPECT_EQ(rendered("a\n{{#if yes}}\n  b\n{{else}}\n  c\n{{/if}}\n{{! comment }}\nd\n"), "a\n  b\nd\n");
  EXPECT_EQ(rendered("a {{~#if yes~}} \n b \n{{~/if~}} \n c"), "abc");
  EXPECT_EQ(rendered("a\r\n  {{#each interests}}\r\n- {{this}}\r\n  {{/each}}\r\nb"),
            "a\r\n- Sports\r\n- Travel\r\nb");
  EXPECT_EQ(rendered("{{!-- a }} b --}}c{{! d }}"), "c");
}

TEST(Templates, CanSayBraces) {
  EXPECT_EQ(rendered("\\{{name}} \\\\{{zero}} { } }} {{zero}}"), "{{name}} \\0 { } }} 0");
}

TEST(Templates, ThatCannotBeReadAreRefused) {
  const auto refused = [](std::string_view text, std::string_view why) {
    EXPECT_EQ(rendered(text), fmt::format("The template cannot be read at line 1: {}.", why));
  };
  refused("{{#if a}}", "the block 'if' is not closed");
  refused("{{#if a}}{{/each}}", "'each' closes the block 'if'");
  refused("{{/if}}", "there is no block to close");
  refused("a{{else}}b", "there is an else without a block");
  refused("{{#if a}}{{else}}{{else}}{{/if}}", "the block 'if' is not closed");
  refused("{{name", "a tag does not end");
  refused("{{", "a tag does not end");
  refused("{{}}", "there is no name where one is expected");
  refused("{{{name}}", "a tag with three braces must end with three");
  refused("{{format name}}", "there is no helper 'format'");
  refused("{{#if}}{{/if}}", "#if requires exactly one argument");
  refused("{{! x", "a comment does not end");
  refused("{{{{raw}}}}", "raw blocks are not supported");
  refused("{{\"x}}", "a text in quotes does not end");
  EXPECT_EQ(rendered("\n\n{{a b}}"), "The template cannot be read at line 3: there is no helper 'a'.");
}

TEST(Hostile, TemplatesAreBounded) {
  std::string deep, loops;
  for (int i = 0; i < 100'000; ++i) deep += "{{#if yes}}";
  EXPECT_EQ(rendered(deep), "The template cannot be read at line 1: it is nested too deep.");
  for (int i = 0; i < 40; ++i) loops += "{{#each @root.interests}}";
  loops += "x";
  for (int i = 0; i < 40; ++i) loops += "{{/each}}";
  EXPECT_EQ(rendered(loops), "The rendered template is longer than 10000 bytes.");
  loops.erase(loops.find('x'), 1);
  EXPECT_EQ(rendered(loops), "The template takes too many steps to render.");
  EXPECT_EQ(rendered("{{#*inline 'x'}}{{> x}}{{/inline}}{{> x}}"),
            "The template's blocks and partials are nested too deep.");
  EXPECT_EQ(rendered("{{#*inline 'x'}}{{> x}}{{> x}}{{/inline}}{{> x}}"),
            "The template's blocks and partials are nested too deep.");
  EXPECT_EQ(rendered("12345678901", 10), "The rendered template is longer than 10 bytes.");
}

TEST(Hostile, TemplatesCannotMakeOneStepTakeLong) {
  constexpr std::string_view kTooMany = "The template takes too many steps to render.";
  constexpr size_t kMost = 100u << 20;
  std::string list = "0", same, names, members;
  for (int i = 1; i < 300; ++i) list += ",0";
  for (int i = 0; i < 100'000; ++i) {
    same += " a=1";
    names += ".b";
    members += fmt::format(" a{}=1", i);
  }
  const auto data = fmt::format(R"({{"l":[{}],"s":"{}","{}":1}})", list, std::string(200'000, 's'),
                                std::string(50'000, 'n'));
  const auto looped = [&](std::string_view body) {
    return rendered(fmt::format("{{{{#*inline 'p'}}}}{{{{/inline}}}}{{{{#each l}}}}{}{{{{/each}}}}", body),
                    kMost, data);
  };
  EXPECT_EQ(looped("{{#each @root.l}}{{@root.s.length}}{{/each}}"), kTooMany);
  EXPECT_EQ(looped("{{> p" + same + "}}"), kTooMany);
  EXPECT_EQ(looped("{{#if @root.a" + names + "}}{{/if}}"), kTooMany);
  EXPECT_EQ(looped("{{#if this" + same + "}}{{/if}}"), kTooMany);
  EXPECT_EQ(looped("{{#each @root.l}}{{@root." + std::string(50'000, 'n') + "}}{{/each}}"), kTooMany);
  EXPECT_EQ(looped("{{#each @root.l}}{{#if (lookup @root @root.s)}}{{/if}}{{/each}}"), kTooMany);
  EXPECT_EQ(rendered("{{#*inline 'q'}}{{#each @root.l}}{{#if ../z}}{{/if}}{{/each}}{{/inline}}{{> q" +
                         members + "}}",
                     kMost, data),
            kTooMany);
}

TEST(TemplateWithGaps, ShowsWhatIsMissingAndGoesOn) {
  JsonDocument document;
  const auto data = document.parse(R"({"name":"Ann","list":[1]})");
  const auto with_gaps = [&](std::string_view text, size_t most = 1000) {
    return Template::parse(text)->render_with_gaps(*data, most);
  };
  const auto greeting = with_gaps("{{name}}: {{disk.free}} {{#each hosts}}x{{/each}}{{disk.free}}!");
  EXPECT_EQ(greeting.text, "Ann: [disk.free] [hosts][disk.free]!");
  EXPECT_EQ(greeting.missing, (std::vector<std::string>{"disk.free", "hosts"}));
  EXPECT_EQ(greeting.problem, "");
  const auto cut = with_gaps("12345{{name}}", 6);
  EXPECT_EQ(cut.text, "12345");
  EXPECT_EQ(cut.problem, "The rendered template is longer than 6 bytes.");
}

}  // namespace
}  // namespace tabella::handlebars
