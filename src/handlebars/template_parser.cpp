#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "handlebars/template_tree.h"

namespace tabella::handlebars {
namespace {

constexpr size_t kDeepestTemplate = 64;

using Kind = TemplateNode::Kind;
using Block = TemplateNode::Block;

// What an identifier may hold: handlebars.js leaves out blanks and !"#%&'()*+,./;<=>@[\]^`{|}~.
bool is_identifier_character(char c) {
  return !is_space(c) && std::string_view("!\"#%&'()*+,./;<=>@[\\]^`{|}~").find(c) == std::string_view::npos;
}

struct HelperName {
  std::string_view name;
  Block block;
};
constexpr HelperName kBlockHelpers[] = {
    {"if", Block::if_}, {"unless", Block::unless}, {"each", Block::each}, {"with", Block::with}};

std::optional<Block> block_helper(std::string_view name) {
  for (const auto& helper : kBlockHelpers)
    if (helper.name == name) return helper.block;
  return std::nullopt;
}

// What stands at the front of a tag, behind its braces.
enum class Sigil { none, triple, raw, open, inverse, close, partial, inline_partial, otherwise, comment };

// By recursive descent: programs hold blocks, blocks hold programs. Errors are kept until somebody looks:
// whoever finds failed() set gives up.
class TemplateParser {
 public:
  explicit TemplateParser(std::string_view text) : text_(text) {}

  Checked<std::unique_ptr<TemplateProgram>> parse() {
    auto program = parse_program(0);
    if (stopped_)
      fail(tag_.sigil == Sigil::close ? "there is no block to close" : "there is an else without a block");
    if (failed()) return invalid(fmt::format("The template cannot be read at line {}: {}.", line(), error_));
    return program;
  }

 private:
  // The tag whose front was read last.
  struct Tag {
    Sigil sigil = Sigil::none;
    TemplateStrip strip = {};
  };

  bool failed() const { return !error_.empty(); }
  void fail(std::string_view error) {
    if (!failed()) error_ = error;
  }
  size_t line() const {
    return static_cast<size_t>(std::ranges::count(text_.substr(0, std::min(at_, text_.size())), '\n')) + 1;
  }

  bool next_is(std::string_view what) const {
    return text_.substr(std::min(at_, text_.size())).starts_with(what);
  }
  bool accept(std::string_view what) {
    if (!next_is(what)) return false;
    at_ += what.size();
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  // Up to the end of the text, or stopped by a tag that belongs to the block around it: its front is in tag_
  // then.
  std::unique_ptr<TemplateProgram> parse_program(size_t depth) {
    auto program = std::make_unique<TemplateProgram>();
    stopped_ = false;
    if (depth > kDeepestTemplate) fail("it is nested too deep");
    while (!failed() && at_ < text_.size()) {
      if (!parse_text(*program)) continue;
      read_tag_front();
      stopped_ = tag_.sigil == Sigil::close || tag_.sigil == Sigil::otherwise || is_bare_inverse();
      if (failed() || stopped_) break;
      parse_tag(*program, depth);
    }
    return program;
  }

  // {{^}} is an else; {{^a}} begins a block.
  bool is_bare_inverse() {
    if (tag_.sigil != Sigil::inverse) return false;
    const auto before = at_;
    skip_space();
    const bool ends = next_is("}}") || next_is("~}}");
    if (ends) tag_.sigil = Sigil::otherwise;
    at_ = before;
    return ends;
  }

  static void add_text(TemplateProgram& program, std::string text) {
    if (text.empty()) return;
    TemplateNode node;
    node.to = text.size();
    node.text = std::move(text);
    program.body.push_back(std::move(node));
  }

  // Up to the next tag; false if none follows. \{{ is no tag, and \\{{ is a backslash and a tag.
  bool parse_text(TemplateProgram& program) {
    const auto tag = std::min(text_.find("{{", at_), text_.size());
    auto text = text_.substr(at_, tag - at_);
    at_ = tag;
    if (tag == text_.size() || !text.ends_with('\\')) {
      add_text(program, std::string(text));
      return tag < text_.size();
    }
    text.remove_suffix(1);
    add_text(program, std::string(text));
    if (text.ends_with('\\')) return true;
    // The braces are text, and all up to the next ones with them.
    auto end = std::min(text_.find("{{", tag + 2), text_.size());
    while (end < text_.size() && end > tag + 2 && text_[end - 1] == '\\') --end;
    add_text(program, std::string(text_.substr(tag, end - tag)));
    at_ = end;
    return false;
  }

  void read_tag_front() {
    tag_ = {};
    at_ += 2;
    if (next_is("{{")) return fail("raw blocks are not supported");
    tag_.strip.open = accept("~");
    if (accept("!")) {
      tag_.sigil = Sigil::comment;
    } else if (accept("{")) {
      tag_.sigil = Sigil::triple;
    } else if (accept("&")) {
      // Not to be escaped: nothing is.
    } else if (accept("#>")) {
      fail("partial blocks are not supported");
    } else if (accept("#*")) {
      tag_.sigil = Sigil::inline_partial;
    } else if (accept("#")) {
      tag_.sigil = Sigil::open;
    } else if (accept("/")) {
      tag_.sigil = Sigil::close;
    } else if (accept("^")) {
      tag_.sigil = Sigil::inverse;
    } else if (accept(">")) {
      tag_.sigil = Sigil::partial;
    } else {
      skip_space();
      const auto before = at_;
      if (accept("else") &&
          (at_ == text_.size() || is_space(text_[at_]) || text_[at_] == '~' || text_[at_] == '}'))
        tag_.sigil = Sigil::otherwise;
      else
        at_ = before;
    }
  }

  // The tag's braces; what they strip behind them goes to `strip`.
  void read_tag_end(TemplateStrip& strip, std::string_view braces = "}}") {
    skip_space();
    if (braces == "}}}") {
      if (!next_is("}}}") && !next_is("}~}}")) return fail("a tag with three braces must end with three");
      ++at_;
      braces = "}}";
    }
    strip.close = accept("~");
    if (!accept(braces))
      fail(at_ == text_.size() ? "a tag does not end"
                               : fmt::format("'{}' cannot stand in a tag", text_[at_]));
  }

  void parse_tag(TemplateProgram& program, size_t depth) {
    TemplateNode node;
    node.strip = tag_.strip;
    switch (tag_.sigil) {
      case Sigil::comment: parse_comment(node); break;
      case Sigil::open:
      case Sigil::inverse: parse_block(node, depth); break;
      case Sigil::partial: parse_partial(node); break;
      case Sigil::inline_partial: parse_inline_partial(node, program, depth); break;
      default: parse_mustache(node);
    }
    program.body.push_back(std::move(node));
  }

  void parse_comment(TemplateNode& node) {
    node.kind = Kind::comment;
    const bool dashes = accept("--");
    const auto end = text_.find(dashes ? "--" : "}}", at_);
    if (!dashes) {
      if (end == std::string_view::npos) return fail("a comment does not end");
      node.strip.close = end > at_ && text_[end - 1] == '~';
      at_ = end + 2;
      return;
    }
    for (auto at = end; at != std::string_view::npos; at = text_.find("--", at + 1)) {
      at_ = at + 2;
      node.strip.close = accept("~");
      if (accept("}}")) return;
    }
    fail("a comment does not end");
  }

  void parse_mustache(TemplateNode& node) {
    node.kind = Kind::mustache;
    const bool triple = tag_.sigil == Sigil::triple;
    node.expression = parse_call();
    read_tag_end(node.strip, triple ? "}}}" : "}}");
  }

  // name=value …, as |a b|
  void parse_hash_and_parameters(TemplateNode& node) {
    while (!failed()) {
      skip_space();
      if (next_is("as") && text_.substr(at_ + 2).starts_with(' ')) {
        at_ += 2;
        skip_space();
        if (!accept("|")) return fail("as must be followed by |names|");
        for (skip_space(); !failed() && !accept("|"); skip_space()) node.parameters.push_back(parse_name());
        return;
      }
      if (at_ == text_.size() || !is_identifier_character(text_[at_])) return;
      auto name = parse_name();
      skip_space();
      if (!accept("=")) return fail(fmt::format("'{}' is one argument too many", name));
      skip_space();
      node.hash.emplace_back(std::move(name), parse_expression(0));
    }
  }

  void parse_block(TemplateNode& node, size_t depth) {
    const bool inverted = tag_.sigil == Sigil::inverse;
    const auto name = parse_block_head(node);
    if (inverted && node.block != Block::section) return fail(fmt::format("'^{}' is no block", name));
    if (inverted) node.block = Block::inverted;
    read_tag_end(node.strip);
    parse_block_body(node, name, depth);
  }

  void parse_block_body(TemplateNode& node, std::string_view name, size_t depth) {
    node.first = parse_program(depth + 1);
    if (stopped_ && tag_.sigil == Sigil::otherwise)
      parse_else(node, name, depth);
    else
      parse_close(node.close_strip, name);
  }

  void parse_else(TemplateNode& node, std::string_view name, size_t depth) {
    node.else_strip = tag_.strip;
    skip_space();
    if (next_is("}}") || next_is("~}}")) {
      read_tag_end(node.else_strip);
      node.second = parse_program(depth + 1);
      return parse_close(node.close_strip, name);
    }
    // {{else if b}}: a block of its own, closed by what closes the first.
    TemplateNode chained{.kind = Kind::block, .strip = tag_.strip};
    parse_block_head(chained);
    read_tag_end(chained.strip);
    node.else_strip = chained.strip;
    parse_block_body(chained, name, depth + 1);
    node.close_strip = chained.close_strip;
    node.second = std::make_unique<TemplateProgram>();
    node.second->chained = true;
    node.second->body.push_back(std::move(chained));
  }

  void parse_close(TemplateStrip& strip, std::string_view name) {
    if (failed()) return;
    if (!stopped_ || tag_.sigil != Sigil::close)
      return fail(fmt::format("the block '{}' is not closed", name));
    stopped_ = false;
    strip = tag_.strip;
    skip_space();
    if (const auto path = parse_path(); !failed() && path.text != name)
      return fail(fmt::format("'{}' closes the block '{}'", path.text, name));
    read_tag_end(strip);
  }

  void parse_inline_partial(TemplateNode& node, TemplateProgram& program, size_t depth) {
    node.kind = Kind::inline_partial;
    skip_space();
    if (parse_name() != "inline") return fail("the only decorator is inline");
    skip_space();
    node.text = parse_partial_name();
    read_tag_end(node.strip);
    node.first = parse_program(depth + 1);
    parse_close(node.close_strip, "inline");
    program.partials.insert_or_assign(node.text, node.first.get());
  }

  void parse_partial(TemplateNode& node) {
    node.kind = Kind::partial;
    skip_space();
    node.text = parse_partial_name();
    skip_space();
    node.has_expression = !next_is("}") && !next_is("~") && !hash_follows();
    if (node.has_expression) node.expression = parse_expression(0);
    parse_hash_and_parameters(node);
    read_tag_end(node.strip);
  }

  std::string parse_partial_name() {
    if (next_is("(")) fail("partials whose names are computed are not supported");
    if (next_is("\"") || next_is("'")) return parse_string();
    return parse_path().text;
  }

  bool hash_follows() {
    auto at = at_;
    while (at < text_.size() && is_identifier_character(text_[at])) ++at;
    while (at < text_.size() && is_space(text_[at])) ++at;
    return at > at_ && at < text_.size() && text_[at] == '=';
  }

  // The name that closes it.
  std::string parse_block_head(TemplateNode& node) {
    node.kind = Kind::block;
    skip_space();
    auto path = parse_path();
    const auto helper =
        path.names.size() == 1 && !path.scoped && !path.data ? block_helper(path.names[0]) : std::nullopt;
    auto name = path.text;
    if (helper) {
      node.block = *helper;
      skip_space();
      if (next_is("}") || next_is("~")) fail(fmt::format("#{} requires exactly one argument", name));
      node.expression = parse_expression(0);
    } else {
      node.expression.what = std::move(path);
    }
    parse_hash_and_parameters(node);
    return name;
  }

  // What a mustache shows: a path, also one in quotes, or a helper with its arguments.
  TemplateExpression parse_call() {
    skip_space();
    auto expression = parse_expression(0);
    skip_space();
    auto* const path = std::get_if<TemplatePath>(&expression.what);
    if (at_ >= text_.size()) fail("a tag does not end");
    if (!failed() && !next_is("}") && !next_is("~")) {
      if (!path || path->text != "lookup")
        fail(path ? fmt::format("there is no helper '{}'", path->text) : "a literal has no arguments");
      return parse_lookup(0);
    }
    if (const auto* literal = std::get_if<TemplateLiteral>(&expression.what);
        literal && expression.lookup.empty())
      if (const auto* text = std::get_if<std::string>(literal))
        expression.what = TemplatePath{.text = *text, .names = {*text}};
    return expression;
  }

  TemplateExpression parse_lookup(size_t depth) {
    TemplateExpression expression;
    for (int i = 0; i < 2 && !failed(); ++i) {
      skip_space();
      expression.lookup.push_back(parse_expression(depth + 1));
    }
    return expression;
  }

  TemplateExpression parse_expression(size_t depth) {
    TemplateExpression expression;
    if (depth > kDeepestTemplate) fail("it is nested too deep");
    if (failed()) return expression;
    if (accept("(")) {
      skip_space();
      if (const auto name = parse_name(); name != "lookup")
        fail(fmt::format("there is no helper '{}'", name));
      expression = parse_lookup(depth);
      skip_space();
      if (!accept(")")) fail("there is no ')'");
    } else if (next_is("\"") || next_is("'")) {
      expression.what = TemplateLiteral(parse_string());
    } else {
      expression.what = path_or_literal(parse_path());
    }
    return expression;
  }

  static std::variant<TemplatePath, TemplateLiteral> path_or_literal(TemplatePath path) {
    const auto& text = path.text;
    if (text == "true" || text == "false") return TemplateLiteral(text == "true");
    if (text == "null" || text == "undefined") return TemplateLiteral(nullptr);
    const auto digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
    const bool number =
        !digits.empty() &&
        std::ranges::all_of(digits, [](char c) { return (c >= '0' && c <= '9') || c == '.'; }) &&
        digits.front() != '.' && digits.back() != '.' && std::ranges::count(digits, '.') <= 1;
    if (number) return TemplateLiteral(text);
    return path;
  }

  // In quotes of either kind; a backslash before one of them stands for it.
  std::string parse_string() {
    const char quote = text_[at_++];
    std::string value;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == quote) ++at_;
      value.push_back(text_[at_]);
    }
    if (at_ == text_.size())
      fail("a text in quotes does not end");
    else
      ++at_;
    return value;
  }

  std::string parse_name() {
    const auto begin = at_;
    if (accept("[")) {
      const auto end = text_.find(']', at_);
      if (end == std::string_view::npos) fail("there is no ']'");
      at_ = failed() ? text_.size() : end + 1;
      return std::string(text_.substr(begin + 1, end - begin - 1));
    }
    while (at_ < text_.size() && is_identifier_character(text_[at_])) ++at_;
    if (at_ == begin)
      fail(at_ == text_.size() ? "a tag does not end" : "there is no name where one is expected");
    return std::string(text_.substr(begin, at_ - begin));
  }

  TemplatePath parse_path() {
    TemplatePath path;
    const auto begin = at_;
    path.data = accept("@");
    bool more = true;
    while (more && (next_is("..") || next_is("."))) {
      path.up += next_is("..") ? 1 : 0;
      at_ += next_is("..") ? 2 : 1;
      path.scoped = true;
      more = accept("/");
    }
    while (more && !failed()) {
      const bool literal = next_is("[");
      auto name = parse_name();
      if (name == "this" && !literal && path.names.empty())
        path.scoped = true;
      else
        path.names.push_back(std::move(name));
      more = accept(".") || accept("/");
    }
    path.text = text_.substr(begin, std::min(at_, text_.size()) - begin);
    return path;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool stopped_ = false;
  Tag tag_;
  std::string error_;
};

}  // namespace

Checked<std::unique_ptr<TemplateProgram>> parse_template(std::string_view text) {
  return TemplateParser(text).parse();
}

}  // namespace tabella::handlebars
