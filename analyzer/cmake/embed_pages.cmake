# Writes a C++ source with the text of every page in PAGES_DIR, by the page's name. cmake -DPAGES_DIR=... -DOUTPUT=... -P
file(GLOB pages RELATIVE ${PAGES_DIR} ${PAGES_DIR}/*.md)
list(SORT pages)
set(entries "")
foreach(page ${pages})
  file(READ ${PAGES_DIR}/${page} text)
  string(REGEX REPLACE "\\.md$" "" name ${page})
  # A literal may have 65536 characters at most, and no page comes near.
  string(APPEND entries "    {\"${name}\", R\"page(${text})page\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include <string_view>

#include \"analyzer/rules/rule.h\"

namespace tensorlint {
namespace {

struct Page {
  std::string_view name, text;
};

constexpr Page kPages[] = {
${entries}    {\"\", \"\"},
};

}  // namespace

std::string_view rule_page(std::string_view name) {
  for (const Page& page : kPages)
    if (page.name == name) return page.text;
  return {};
}

}  // namespace tensorlint
")
