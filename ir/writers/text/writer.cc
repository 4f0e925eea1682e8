#include "ir/writers/text/writer.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/text/lexer.h"
#include "ir/text/words.h"
#include "ir/writers/text/code.h"
#include "ir/writers/text/places.h"

namespace tensorlint {
namespace {

using text::Lexer;
using text::NodeText;
using text::Span;
using text::Token;
using text::TokenKind;

class TextEditor {
 public:
  TextEditor(std::string_view file, const Model& model)
      : file_(file), model_(model), places_(file, model), removed_(model.nodes.size()) {}

  std::optional<Error> add(const GraphEdit& edit) {
    return std::visit([this](const auto& one) { return plan(one); }, edit);
  }

  Result<EditedBytes> run() {
    if (auto error = finish()) return *std::move(error);
    std::ranges::stable_sort(splices_, [](const Splice& a, const Splice& b) {
      return std::pair(a.span.begin, a.span.end) < std::pair(b.span.begin, b.span.end);
    });
    EditedBytes out;
    std::size_t kept = 0;
    for (Splice& splice : splices_) {
      if (splice.text.empty() && splice.span.end <= kept) continue;  // gone with what is around it
      if (splice.span.begin < kept || splice.span.end > file_.size())
        return Error{"two edits change the same place of the text", {}};
      out.keep(file_.substr(kept, splice.span.begin - kept));
      out.add(std::move(splice.text));
      kept = splice.span.end;
    }
    out.keep(file_.substr(kept));
    return out;
  }

 private:
  struct Splice {
    Span span;
    std::string text;
  };

  static Error lost() { return Error{"the text is not what the model was read from", {}}; }

  /// Any number of edits change parts of one node, which may have any number of parts: it is looked through once. Null
  /// where it is not found.
  const NodeText* text_of(NodeId id) {
    const auto [known, is_new] = texts_.try_emplace(id);
    if (is_new) known->second = places_.find(id);
    return known->second ? &*known->second : nullptr;
  }

  // ---- edits

  /// Comments of a node that it takes along to another place.
  struct OwnComments {
    std::string_view above;   ///< whole lines
    std::string_view behind;  ///< to the end of its line
    bool any() const { return !above.empty() || !behind.empty(); }
    std::string around(std::string_view indentation, std::string_view node) const {
      return fmt::format("{}{}{}{}", above, indentation, node, behind);
    }
  };

  /// A line of its own above the node and the comments that stand right above it; else right before it, on lines of
  /// their own where there are comments.
  void insert_before(const NodeText& next, std::string_view node, const OwnComments& comments) {
    if (!next.begins_line) {
      const std::string_view line_break = places_.line_break();
      splices_.push_back({{next.span.begin, next.span.begin},
                          comments.any() ? fmt::format("{}{}{}", line_break, comments.around({}, node), line_break)
                                         : fmt::format("{} ", node)});
      return;
    }
    const std::size_t line = line_above(next.span.begin);
    splices_.push_back(
        {{line, line}, comments.around(places_.indentation(next.span.begin), node).append(places_.line_break())});
  }

  /// Where the comments begin that stand right above what begins a line. Any number of nodes go there: it is looked for
  /// once.
  std::size_t line_above(std::size_t at) {
    const auto [known, is_new] = lines_above_.try_emplace(at, places_.line_begin(at));
    if (!is_new) return known->second;
    // Not every line that begins with `#` is a comment: strings have lines, too.
    std::size_t& line = known->second;
    auto comment = std::ranges::lower_bound(model_.comments, places_.line_number(line), {}, &Comment::line);
    for (std::uint32_t number = places_.line_number(line); comment != model_.comments.begin();
         line = places_.line_begin(line - 1))
      if (--comment; !comment->alone || comment->line != --number) break;
    return line;
  }

  /// The comments right above what begins a line, where one of them is about it as the node below: other comments may
  /// be about what follows as well, and stay.
  std::string_view suppressions_above(std::size_t at) {
    const std::size_t begin = line_above(at), end = places_.line_begin(at);
    auto comment = std::ranges::lower_bound(model_.comments, places_.line_number(begin), {}, &Comment::line);
    const std::uint32_t line = places_.line_number(at);
    for (; comment != model_.comments.end() && comment->line < line; ++comment)
      if (comment->text.starts_with(Comment::kDirective)) return file_.substr(begin, end - begin);
    return {};
  }

  /// Behind all nodes of a graph, on a line of its own where the last one ends a line.
  std::optional<Error> append(const Graph& graph, std::string_view code, const OwnComments& comments) {
    if (graph.nodes.empty()) return Error{"a graph of a model in text without nodes takes none", {}};
    const NodeText* const last = text_of(graph.nodes.back());
    if (!last) return lost();
    const std::string_view line_break = places_.line_break();
    const std::size_t behind_last = last->span.end;
    if (last->ends_line && (last->begins_line || comments.any())) {
      const std::size_t end = places_.line_end(behind_last);
      const bool broken = end > 0 && file_[end - 1] == '\n';
      const auto indentation = last->begins_line ? places_.indentation(last->span.begin) : std::string_view();
      splices_.push_back(
          {{end, end},
           fmt::format("{}{}{}", broken ? "" : line_break, comments.around(indentation, code), line_break)});
    } else if (comments.any()) {
      splices_.push_back(
          {{behind_last, behind_last}, fmt::format("{}{}{}", line_break, comments.around({}, code), line_break)});
    } else {
      splices_.push_back({{behind_last, behind_last}, fmt::format(" {}", code)});
    }
    return std::nullopt;
  }

  std::optional<Error> plan(const InsertNode& insert) {
    if (insert.before == NodeId::kNone) return append(model_.graph(insert.graph), text::code_of(insert.node), {});
    const NodeText* const next = text_of(insert.before);
    if (!next) return lost();
    insert_before(*next, text::code_of(insert.node), {});
    return std::nullopt;
  }

  std::optional<Error> plan(const SetOperand& set) {
    const NodeText* const node = text_of(set.node);
    if (!node) return lost();
    if (set.index < model_.node(set.node).operand_count) {
      splices_.push_back({node->operands[set.index], text::value_word(set.value)});
      return std::nullopt;
    }
    auto& grown = grown_[set.node];
    if (!grown.emplace(set.index, set.value).second)
      return Error{fmt::format("operand {} of `{}` is added twice", set.index, model_.label(set.node)), {}};
    return std::nullopt;
  }

  std::optional<Error> plan(const SetResult& set) {
    const NodeText* const node = text_of(set.node);
    if (!node || set.index >= node->results.size()) return lost();
    splices_.push_back({node->results[set.index], text::value_word(set.value)});
    return std::nullopt;
  }

  std::optional<Error> plan(const AddMetadata& /*entry*/) {
    return Error{"nodes and constants of a model in text have no metadata", {}};
  }

  std::optional<Error> plan(const SetAttribute& set) {
    if (set.attribute.kind == AttributeKind::kUndefined) {
      removed_attributes_[set.node].insert(set.attribute.name);
      return std::nullopt;
    }
    const NodeText* const node = text_of(set.node);
    if (!node) return lost();
    const auto known = std::ranges::find(node->attributes, set.attribute.name, &text::AttributeText::name);
    if (known != node->attributes.end())
      splices_.push_back({known->span, text::code_of(set.attribute)});
    else
      new_attributes_[set.node].push_back(text::code_of(set.attribute));
    return std::nullopt;
  }

  std::optional<Error> plan(const AddInitializer& tensor) {
    if (model_.graph(tensor.graph).kind == GraphKind::kFunction)
      return Error{fmt::format("function `{}` cannot hold an initializer", model_.graph_path(tensor.graph)), {}};
    graphs_[tensor.graph].added.push_back(text::code_of(tensor));
    return std::nullopt;
  }

  std::optional<Error> plan(const DropValueInfo& drop) {
    graphs_[drop.graph].dropped.emplace(drop.value, false);
    return std::nullopt;
  }

  std::optional<Error> plan(const RemoveInitializer& removal) {
    const Value& value = model_.value(removal.value);
    if (value.initializer == nullptr)
      return Error{fmt::format("`{}` is not a constant of a graph", model_.name_of(removal.value)), {}};
    graphs_[value.graph].dropped.emplace(std::string(model_.name_of(removal.value)), true);
    return std::nullopt;
  }

  std::optional<Error> plan(const ImportDomain& import) {
    GraphId owner = import.graph;
    while (model_.graph(owner).kind == GraphKind::kSubgraph) owner = model_.graph(owner).parent;
    const std::uint32_t list = model_.graph(owner).opsets;
    const auto& imports = model_.opset_imports[list];
    if (std::ranges::any_of(imports, [&](const OpsetImport& one) { return model_.text(one.domain) == import.domain; }))
      return std::nullopt;
    if (list != 0)
      return Error{
          fmt::format("cannot import a domain into function `{}` of a model in text", model_.graph_path(owner)), {}};
    if (!imported_.insert(import.domain).second) return std::nullopt;
    return into_header("opset_import", fmt::format("{} : {}", text::quoted(import.domain), import.version));
  }

  std::optional<Error> plan(const AddModelMetadata& entry) {
    return into_header("metadata_props", fmt::format("{}: {}", text::quoted(entry.key), text::quoted(entry.value)));
  }

  std::optional<Error> plan(const RemoveNode& removal) {
    if (removed_[removal.node]) return std::nullopt;
    removed_[removal.node] = true;
    const auto node = places_.find(removal.node);  // once: not remembered
    if (!node) return lost();
    take_away(*node);
    return std::nullopt;
  }

  void take_away(const NodeText& node) {
    const Span& span = node.span;
    if (node.begins_line && node.ends_line) {
      splices_.push_back({{places_.line_begin(span.begin), places_.line_end(span.end)}, {}});
      return;
    }
    std::size_t end = span.end;
    while (end < file_.size() && file_[end] == ' ') ++end;
    splices_.push_back({{span.begin, end}, {}});
  }

  std::optional<Error> plan(const MoveNode& move) {
    const NodeText* const node = text_of(move.node);
    if (!node) return lost();
    const std::string_view code = file_.substr(node->span.begin, node->span.end - node->span.begin);
    OwnComments comments;
    if (node->begins_line && node->ends_line) {
      std::string_view& behind = comments.behind;
      behind = file_.substr(node->span.end, places_.line_end(node->span.end) - node->span.end);
      while (!behind.empty() && (behind.back() == '\n' || behind.back() == '\r')) behind.remove_suffix(1);
      if (trimmed(behind).empty()) behind = {};
      comments.above = suppressions_above(node->span.begin);
      if (!comments.above.empty()) {
        const auto begin = static_cast<std::size_t>(comments.above.data() - file_.data());
        splices_.push_back({{begin, begin + comments.above.size()}, {}});
      }
    }
    take_away(*node);
    if (move.before != NodeId::kNone) {
      const NodeText* const next = text_of(move.before);
      if (!next) return lost();
      insert_before(*next, code, comments);
      return std::nullopt;
    }
    return append(model_.graph(model_.node(move.node).graph), code, comments);
  }

  std::optional<Error> plan(const RemoveComment& removal) {
    const auto comment = std::ranges::lower_bound(model_.comments, removal.line, {}, &Comment::line);
    if (comment == model_.comments.end() || comment->line != removal.line)
      return Error{fmt::format("there is no comment on line {}", removal.line), {}};
    const auto found = places_.mark_of(*comment);
    if (!found) return lost();
    const std::size_t mark = *found;
    std::size_t end = places_.line_end(mark);
    if (comment->alone) {
      splices_.push_back({{places_.line_begin(mark), end}, {}});
      return std::nullopt;
    }
    while (end > mark && (file_[end - 1] == '\n' || file_[end - 1] == '\r')) --end;
    std::size_t from = mark;
    while (from > 0 && (file_[from - 1] == ' ' || file_[from - 1] == '\t')) --from;
    splices_.push_back({{from, end}, {}});
    return std::nullopt;
  }

  /// An item more in a list of the header, which has to be there.
  std::optional<Error> into_header(std::string_view field, std::string item) {
    if (const auto list = header_.find(field); list != header_.end()) {
      list->second.items += ", " + std::move(item);
      return std::nullopt;
    }
    if (const auto list = new_fields_.find(field); list != new_fields_.end()) {
      list->second += ", " + std::move(item);
      return std::nullopt;
    }
    Lexer lexer(file_);
    if (!lexer.accept('<')) return Error{fmt::format("the model has no header to put `{}` into", field), {}};
    while (!lexer.peek().is('>')) {
      const Token key = lexer.take();
      if (key.kind == TokenKind::kEnd || !lexer.accept(':')) return lost();
      const Token value = lexer.peek();
      const auto end = places_.skip(lexer);
      if (!end) return lost();
      if (key.text == field && value.is('[')) {
        const bool empty =
            file_.substr(value.position.offset + 1, *end - value.position.offset - 2).find_first_not_of(" \t\r\n") ==
            std::string_view::npos;
        header_.emplace(field, HeaderList{*end - 1, (empty ? "" : ", ") + std::move(item)});
        return std::nullopt;
      }
      lexer.accept(',');
    }
    const std::size_t close = lexer.peek().position.offset;
    new_fields_[std::string(field)] = std::move(item);
    new_fields_at_ = close;
    return std::nullopt;
  }

  /// What several edits say of one place, as one splice.
  std::optional<Error> finish() {
    for (auto& [field, list] : header_) splices_.push_back({{list.end, list.end}, std::move(list.items)});
    std::string fields;
    for (const auto& [field, items] : new_fields_) fields += fmt::format(", {}: [{}]", field, items);
    if (!fields.empty()) splices_.push_back({{new_fields_at_, new_fields_at_}, std::move(fields)});

    for (const auto& [id, operands] : grown_) {
      const NodeText* const node = text_of(id);
      if (!node) return lost();
      std::vector<std::string> added;
      std::uint32_t next = model_.node(id).operand_count;
      for (const auto& [index, value] : operands) {
        for (; next < index; ++next) added.emplace_back();
        added.push_back(value);
        ++next;
      }
      // A comma that ends the list already stands for none.
      const bool comma = model_.node(id).operand_count > 0;
      const std::size_t last = comma ? node->operands.back().end : node->operands_end;
      const std::string list = text::names_code(added);
      splices_.push_back({{last, node->operands_end}, comma ? ", " + list : list});
    }
    for (const auto& [id, names] : removed_attributes_)
      if (auto error = remove_attributes(id, names)) return error;
    for (const auto& [id, attributes] : new_attributes_) {
      const NodeText* const node = text_of(id);
      if (!node) return lost();
      const std::string list = fmt::format("{}", fmt::join(attributes, ", "));
      if (node->attributes_end)
        splices_.push_back(
            {{*node->attributes_end, *node->attributes_end}, (node->attributes.empty() ? "" : ", ") + list});
      else
        splices_.push_back({{node->behind_operator, node->behind_operator}, fmt::format(" <{}>", list)});
    }
    for (const auto& [id, changes] : graphs_)
      if (auto error = finish_graph(id, changes.added, changes.dropped)) return error;
    return std::nullopt;
  }

  /// With the list's brackets where none stays; an attribute that is not there is gone already.
  std::optional<Error> remove_attributes(NodeId id, const std::set<std::string>& names) {
    const NodeText* const node = text_of(id);
    if (!node) return lost();
    const auto& all = node->attributes;
    const auto goes = [&](const text::AttributeText& attribute) { return names.contains(attribute.name); };
    if (std::ranges::none_of(all, goes)) return std::nullopt;
    if (std::ranges::all_of(all, goes) && !new_attributes_.contains(id)) {
      splices_.push_back({{node->attributes_begin, *node->attributes_end + 1}, {}});
      return std::nullopt;
    }
    if (std::ranges::all_of(all, goes))
      return Error{fmt::format("all attributes of `{}` are replaced by others", model_.label(id)), {}};
    take_out(all, goes);
    return std::nullopt;
  }

  /// Takes elements out of a list, with the separators that they leave. Returns how many stay.
  template <typename Element, typename Goes>
  std::size_t take_out(const std::vector<Element>& all, Goes goes) {
    std::size_t kept = 0;
    std::size_t kept_end = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!goes(all[i])) {
        ++kept;
        kept_end = all[i].span.end;
        continue;
      }
      // Up to the next one that stays; where none follows, from the last one that stays.
      std::size_t next = i;
      while (next < all.size() && goes(all[next])) ++next;
      if (next < all.size())
        splices_.push_back({{all[i].span.begin, all[next].span.begin}, {}});
      else
        splices_.push_back({{kept > 0 ? kept_end : all[i].span.begin, all.back().span.end}, {}});
      i = next - 1;
    }
    return kept;
  }

  std::optional<Error> finish_graph(GraphId id, const std::vector<std::string>& added,
                                    const std::set<std::pair<std::string, bool>>& dropped) {
    const auto graph = places_.find(id);
    if (!graph) return lost();
    const auto& all = graph->declarations;
    const auto goes = [&](const text::DeclarationText& declaration) {
      return dropped.contains({declaration.name, declaration.has_value});
    };
    const std::size_t kept = take_out(all, goes);
    if (added.empty()) return std::nullopt;
    const std::string list = fmt::format("{}", fmt::join(added, ", "));
    if (graph->declarations_end)
      splices_.push_back({{*graph->declarations_end, *graph->declarations_end}, (kept > 0 ? ", " : "") + list});
    else
      splices_.push_back({{graph->nodes_begin, graph->nodes_begin}, fmt::format("<{}>\n", list)});
    return std::nullopt;
  }

  struct GraphChanges {
    std::vector<std::string> added;
    std::set<std::pair<std::string, bool>> dropped;  ///< name, and whether it is a constant
  };

  std::string_view file_;
  const Model& model_;
  text::TextPlaces places_;
  std::map<NodeId, std::optional<NodeText>> texts_;
  std::map<std::size_t, std::size_t> lines_above_;
  IdVector<NodeId, bool> removed_;
  std::vector<Splice> splices_;
  std::map<NodeId, std::map<std::uint32_t, std::string>> grown_;
  std::map<NodeId, std::vector<std::string>> new_attributes_;
  std::map<NodeId, std::set<std::string>> removed_attributes_;
  std::map<GraphId, GraphChanges> graphs_;
  struct HeaderList {
    std::size_t end = 0;
    std::string items;  // that are added there
  };
  std::map<std::string, HeaderList, std::less<>> header_;  // by field
  std::map<std::string, std::string, std::less<>> new_fields_;
  std::size_t new_fields_at_ = 0;
  std::set<std::string> imported_;
};

}  // namespace

Result<EditedBytes> edit_onnx_text(std::string_view file, const Model& model, std::span<const GraphEdit> edits) {
  TextEditor editor(file, model);
  for (const GraphEdit& edit : edits)
    if (auto error = editor.add(edit)) return *std::move(error);
  return editor.run();
}

}  // namespace tensorlint
