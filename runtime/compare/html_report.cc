#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/version.h"
#include "runtime/compare/report_facts.h"

// One page without scripts or references to other files: tables, and plots as SVG.

namespace tensorlint::compare {
namespace {

constexpr double kWidth = 860, kHeight = 220, kMargin = 40;

/// Text of strangers as text of a page.
std::string text_of(std::string_view text) {
  std::string result;
  for (const char each : escape_for_display(text, 500)) {
    switch (each) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += each;
    }
  }
  return result;
}

std::string_view colour_of(Verdict verdict) {
  constexpr std::array<std::string_view, 5> kColours{"#7a8", "#48a", "#b80", "#999", "#c22"};
  return kColours[static_cast<std::size_t>(verdict)];
}

std::string number_text(double number) { return std::isfinite(number) ? fmt::format("{:.4g}", number) : "&infin;"; }

std::string svg_begin(std::string_view title) {
  return fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\">"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
      title, kWidth, kHeight);
}

constexpr std::string_view kSvgEnd = "</svg></figure>\n";

std::string svg(std::string_view title, std::string_view inside) {
  return fmt::format("{}{}{}", svg_begin(title), inside, kSvgEnd);
}

std::string line(double x1, double y1, double x2, double y2, std::string_view colour) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>", x1, y1, x2, y2,
                     colour);
}

std::string label(double x, double y, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\">{}</text>", x, y, text);
}

/// Error over bound of each value, logarithmic, in topological order. Of many values: written as it is made.
void ratio_plot(const Comparison& comparison, const Model& model, const TextSink& out) {
  constexpr double kLeast = -6, kMost = 6;  // powers of ten
  const auto height_of = [](double power) {
    return kHeight - kMargin / 2 - (power - kLeast) / (kMost - kLeast) * (kHeight - kMargin);
  };
  out(svg_begin("Error over bound, by node in topological order"));
  out(line(kMargin, height_of(0), kWidth, height_of(0), "#c22") + label(2, height_of(0) + 4, "1"));
  for (const double power : {-6.0, -3.0, 3.0, 6.0})
    out(line(kMargin, height_of(power), kWidth, height_of(power), "#eee") +
        label(2, height_of(power) + 4, fmt::format("1e{}", power)));
  const auto count = static_cast<double>(std::max<std::size_t>(comparison.results.size(), 1));
  for (std::size_t i = 0; i < comparison.results.size(); ++i) {
    const NodeResult& result = comparison.results[i];
    const double ratio = result.test.ratio;
    const double power = ratio > 0 ? std::clamp(std::log10(ratio), kLeast, kMost) : kLeast;
    out(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {}</title></circle>",
                    kMargin + (static_cast<double>(i) + 0.5) / count * (kWidth - kMargin), height_of(power),
                    colour_of(result.test.verdict), text_of(model.label(result.node)), number_text(ratio)));
  }
  out(kSvgEnd);
}

/// Recorded elements over those of the reference.
std::string scatter_plot(const std::vector<SampledElement>& sample) {
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const SampledElement& each : sample)
    for (const double x : {each.reference, each.other})
      if (std::isfinite(x)) least = std::min(least, x), most = std::max(most, x);
  if (!(least < most)) return {};
  const auto at = [&](double x) { return (x - least) / (most - least); };
  std::string inside = line(kMargin, kHeight - kMargin / 2, kWidth - kMargin, kMargin / 2, "#ccc");
  for (const SampledElement& each : sample)
    if (std::isfinite(each.reference) && std::isfinite(each.other))
      inside += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"#48a\" fill-opacity=\"0.5\"/>",
                            kMargin + at(each.reference) * (kWidth - 2 * kMargin),
                            kHeight - kMargin / 2 - at(each.other) * (kHeight - kMargin));
  inside +=
      label(kMargin, kHeight - 4, number_text(least)) + label(kWidth - 2 * kMargin, kHeight - 4, number_text(most));
  return svg("Recorded elements over those of the reference", inside);
}

/// How many elements have which error over bound, by powers of two.
std::string histogram(const std::vector<SampledElement>& sample) {
  constexpr int kBins = 48, kBelow = 16;  // from 2^-16 to 2^31
  std::array<double, kBins> counts{};
  for (const SampledElement& each : sample) {
    const double error = std::fabs(each.other - each.reference);
    const double ratio = error == 0 ? 0 : each.bound > 0 ? error / each.bound : HUGE_VAL;
    const double power = ratio > 0 ? std::log2(ratio) : -kBelow;
    const double bin = std::isnan(power) ? kBins - 1 : std::clamp(std::floor(power) + kBelow, 0.0, kBins - 1.0);
    ++counts[static_cast<std::size_t>(bin)];
  }
  const double most = std::max(*std::ranges::max_element(counts), 1.0), step = (kWidth - kMargin) / kBins;
  std::string inside;
  for (int bin = 0; bin < kBins; ++bin) {
    const double height = counts[static_cast<std::size_t>(bin)] / most * (kHeight - kMargin);
    inside += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>",
                          kMargin + bin * step, kHeight - kMargin / 2 - height, step - 1, height,
                          bin < kBelow ? "#48a" : "#c22");
  }
  inside += label(kMargin, kHeight - 4, "2^-16") + label(kMargin + kBelow * step, kHeight - 4, "1") +
            label(kWidth - kMargin, kHeight - 4, "2^31");
  return svg("Elements by error over bound", inside);
}

std::string paragraph(std::string_view sentence) { return fmt::format("<p>{}</p>\n", text_of(sentence)); }

std::string paragraphs(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += paragraph(sentence);
  return text;
}

std::string first_text(const ReportFacts::First& first) {
  std::string text;
  if (first.location != nullptr)
    text +=
        fmt::format("<pre>{}\n{}</pre>\n", text_of(location_text(*first.location)), text_of(*first.location->source));
  text += paragraphs(first.figures);
  if (!first.cause.empty()) text += paragraph(fmt::format("looks like: {}", first.cause));
  return first.before.empty() ? text : text + paragraph(first.before);
}

constexpr std::string_view kLegend =
    "<dl><dt>error over bound</dt><dd>of the element whose error is largest against what rounding explains of it; "
    "above 1 is a bug</dd>"
    "<dt>rms ratio</dt><dd>root mean square of the errors over what rounding makes one expect; far above 1 is a bug, "
    "though each element may be within its bound</dd>"
    "<dt>slope</dt><dd>share of the value by which the errors grow with it; a bug where rounding cannot give all "
    "elements so much of the same sign</dd>"
    "<dt>verdict</dt><dd>identical: the reference, rounded to the dtype; explained: rounding explains all differences; "
    "explained-if: it would under the condition named; ill-conditioned: it does, and bounds reach a tenth of the "
    "values; bug</dd></dl>\n";

void value_table(const Comparison& comparison, const Model& model, const TextSink& out) {
  out("<table><tr><th>node</th><th>operator</th><th>value</th><th>verdict</th><th>error over bound</th><th>rms "
      "ratio</th><th>slope</th></tr>\n");
  for (const NodeResult& result : comparison.results)
    out(fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td style=\"color:{}\">{}{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        text_of(model.label(result.node)), text_of(op_of(model, result.node)), text_of(model.name_of(result.value)),
        colour_of(result.test.verdict), to_text(result.test.verdict),
        result.condition.empty() ? "" : fmt::format(" {}", result.condition), number_text(result.test.ratio),
        number_text(result.test.rms_ratio), number_text(result.test.slope)));
  out("</table>\n");
}

}  // namespace

void html_report(const Comparison& comparison, const ReportedModel& reported, const TextSink& out) {
  const Model& model = reported.model;
  const ReportFacts facts = facts_of(comparison, reported);
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>tensorlint compare: {0}</title>\n"
      "<style>body{{font:14px/1.4 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}"
      "td,th{{padding:.1em .6em;text-align:left}}svg{{border:1px solid #ddd;width:100%}}figure{{margin:1em 0}}"
      "pre{{background:#f4f4f4;padding:.6em}}dt{{font-weight:bold}}</style></head><body>\n<h1>{0}: {1}</h1>\n",
      text_of(model.path), to_text(comparison.verdict()));
  page += fmt::format("<p><strong>{}</strong></p>\n", text_of(facts.outcome));
  if (facts.first) page += first_text(*facts.first);
  if (!facts.next.empty()) page += paragraph(facts.next);
  page += paragraphs(facts.conditions) + paragraphs(facts.notes) + paragraph(facts.summary) + paragraphs(facts.skipped);
  page += paragraphs(facts.setting);
  if (facts.first) {
    const std::vector<SampledElement>& sample = comparison.results[comparison.first].sample;
    page += scatter_plot(sample) + histogram(sample);
  }
  out(page);
  ratio_plot(comparison, model, out);
  value_table(comparison, model, out);
  out(kLegend);
  out(fmt::format("<p>tensorlint {}</p>\n</body></html>\n", kVersion));
}

}  // namespace tensorlint::compare
