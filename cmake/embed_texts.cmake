# embed_texts(SOURCE NAMESPACE FUNCTION FOLDER EXTENSION): sets SOURCE to a C++ source, made when it is built, that defines
# `std::string_view NAMESPACE::FUNCTION(std::string_view name)`: the text of FOLDER/name.EXTENSION, empty where there is none,
# and `std::span<const std::string_view> NAMESPACE::FUNCTION_names()`.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(EMBED_TEXTS_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
  function(embed_texts source namespace function folder extension)
    file(GLOB texts CONFIGURE_DEPENDS ${folder}/*.${extension})
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DEXTENSION=${extension} -DNAMESPACE=${namespace} -DFUNCTION=${function} -DOUTPUT=${output} -P ${EMBED_TEXTS_SCRIPT}
      DEPENDS ${texts} ${EMBED_TEXTS_SCRIPT}
      COMMENT "${function}.cc from ${folder}")
    set(${source} ${output} PARENT_SCOPE)
  endfunction()
  return()
endif()

file(GLOB texts RELATIVE ${FOLDER} ${FOLDER}/*.${EXTENSION})
list(SORT texts)
set(entries "")
set(names "")
foreach(file ${texts})
  file(READ ${FOLDER}/${file} text)
  string(REGEX REPLACE "\\.${EXTENSION}$" "" name ${file})
  # A literal may have 65536 characters at most.
  string(APPEND entries "    {\"${name}\", R\"text(${text})text\"},\n")
  string(APPEND names "    \"${name}\",\n")
endforeach()
file(WRITE ${OUTPUT} "#include <span>
#include <string_view>

namespace ${NAMESPACE} {
namespace {

struct Text {
  std::string_view name, text;
};

constexpr Text kTexts[] = {
${entries}};

constexpr std::string_view kNames[] = {
${names}};

}  // namespace

std::string_view ${FUNCTION}(std::string_view name) {
  for (const Text& text : kTexts)
    if (text.name == name) return text.text;
  return {};
}

std::span<const std::string_view> ${FUNCTION}_names() { return kNames; }

}  // namespace ${NAMESPACE}
")
