// The rules of handlebars.js (lib/handlebars/compiler/whitespace-control.js), which its users' templates rely
// upon.
#include <string_view>

#include "base/text.h"
#include "handlebars/template_tree.h"

namespace tabella::handlebars {
namespace {

using Body = std::vector<TemplateNode>;

// What of a block's tags matters to the texts around it.
struct Standing {
  TemplateStrip strip;
  bool open_alone = false;    // nothing but blanks up to the end of the line, behind its first tag
  bool close_alone = false;   // nothing but blanks from the beginning of the line, before its last tag
  bool inline_alone = false;  // a comment or a partial
  bool counts = true;
};

const TemplateNode* text_at(const Body& body, size_t at) {
  return at < body.size() && body[at].kind == TemplateNode::Kind::text ? &body[at] : nullptr;
}

// The texts as they were in the template, before any of them was stripped.
bool ends_with_line_start(std::string_view text, bool begins_template) {
  while (!text.empty() && is_space(text.back())) {
    if (text.back() == '\n') return true;
    text.remove_suffix(1);
  }
  return begins_template && text.empty();
}

bool begins_with_line_end(std::string_view text, bool ends_template) {
  while (!text.empty() && is_space(text.front())) {
    if (text.front() == '\n') return true;
    text.remove_prefix(1);
  }
  return ends_template && text.empty();
}

// Whether a line begins before body[at].
bool line_starts_before(const Body& body, size_t at, bool root) {
  if (at == 0) return root;
  const auto* text = text_at(body, at - 1);
  return text && ends_with_line_start(text->text, root && at == 1);
}

// Whether a line ends behind body[at - 1].
bool line_ends_at(const Body& body, size_t at, bool root) {
  if (at >= body.size()) return root;
  const auto* text = text_at(body, at);
  return text && begins_with_line_end(text->text, root && at + 1 == body.size());
}

bool line_starts_at_end(const TemplateProgram& program) {
  return line_starts_before(program.body, program.body.size(), false);
}
bool line_ends_at_begin(const TemplateProgram& program) { return line_ends_at(program.body, 0, false); }

// The blanks up to the end of the line, or all of them, off the front of body[at].
void strip_front(Body& body, size_t at, bool all) {
  if (!text_at(body, at)) return;
  auto& node = body[at];
  if (!all && node.right_stripped) return;
  const auto before = node.from;
  const auto front_is = [&](char c) { return node.from < node.to && node.text[node.from] == c; };
  if (all) {
    while (node.from < node.to && is_space(node.text[node.from])) ++node.from;
  } else {
    while (front_is(' ') || front_is('\t')) ++node.from;
    if (front_is('\r') && node.from + 1 < node.to && node.text[node.from + 1] == '\n') ++node.from;
    if (front_is('\n')) ++node.from;
  }
  node.right_stripped = node.from != before;
}

// The blanks of the line, or all of them, off the end of body[at]. Whether there were any.
bool strip_back(Body& body, size_t at, bool all) {
  if (!text_at(body, at)) return false;
  auto& node = body[at];
  if (!all && node.left_stripped) return false;
  const auto before = node.to;
  const auto strips = [all](char c) { return all ? is_space(c) : c == ' ' || c == '\t'; };
  while (node.to > node.from && strips(node.text[node.to - 1])) --node.to;
  node.left_stripped = node.to != before;
  return node.left_stripped;
}

void strip_begin(TemplateProgram& program, bool all) { strip_front(program.body, 0, all); }
// The index before the first is none: it is past the end.
void strip_end(TemplateProgram& program, bool all) { strip_back(program.body, program.body.size() - 1, all); }

void control(TemplateProgram& program, bool root);

Standing control_block(TemplateNode& node) {
  control(*node.first, false);
  if (node.second) control(*node.second, false);
  auto& first = *node.first;
  // Of an {{else if}}, what stands behind that tag.
  auto* const behind_else = !node.second           ? nullptr
                            : node.second->chained ? node.second->body.front().first.get()
                                                   : node.second.get();
  const Standing standing{.strip = {.open = node.strip.open, .close = node.close_strip.close},
                          .open_alone = line_ends_at_begin(first),
                          .close_alone = line_starts_at_end(behind_else ? *behind_else : first)};
  if (node.strip.close) strip_begin(first, true);
  if (!node.second) {
    if (node.close_strip.open) strip_end(first, true);
    return standing;
  }
  if (node.else_strip.open) strip_end(first, true);
  if (node.else_strip.close) strip_begin(*behind_else, true);
  if (node.close_strip.open) strip_end(*behind_else, true);
  if (line_starts_at_end(first) && line_ends_at_begin(*behind_else)) {
    strip_end(first, false);
    strip_begin(*behind_else, false);
  }
  return standing;
}

Standing control_node(TemplateNode& node) {
  switch (node.kind) {
    case TemplateNode::Kind::text: return {.counts = false};
    case TemplateNode::Kind::mustache: return {.strip = node.strip};
    case TemplateNode::Kind::comment:
    case TemplateNode::Kind::partial: return {.strip = node.strip, .inline_alone = true};
    case TemplateNode::Kind::block:
    case TemplateNode::Kind::inline_partial: return control_block(node);
  }
  return {};
}

// The blanks that stand before a partial on its line.
std::string indent_before(const TemplateNode& text) {
  return text.text.substr(text.text.find_last_not_of(" \t") + 1);
}

void control(TemplateProgram& program, bool root) {
  auto& body = program.body;
  for (size_t i = 0; i < body.size(); ++i) {
    const auto standing = control_node(body[i]);
    if (!standing.counts) continue;
    const bool starts = line_starts_before(body, i, root);
    const bool ends = line_ends_at(body, i + 1, root);
    if (standing.strip.close) strip_front(body, i + 1, true);
    if (standing.strip.open) strip_back(body, i - 1, true);
    if (standing.inline_alone && starts && ends) {
      strip_front(body, i + 1, false);
      if (strip_back(body, i - 1, false) && body[i].kind == TemplateNode::Kind::partial)
        body[i].indent = indent_before(body[i - 1]);
    }
    if (standing.open_alone && starts) {
      strip_begin(*body[i].first, false);
      strip_back(body, i - 1, false);
    }
    if (standing.close_alone && ends) {
      strip_front(body, i + 1, false);
      strip_end(body[i].second ? *body[i].second : *body[i].first, false);
    }
  }
}

}  // namespace

void control_whitespace(TemplateProgram& program) { control(program, true); }

}  // namespace tabella::handlebars
