# A room is a folder that holds one stage of the way from file to report, a target of its own. It links to the rooms it
# may include from and to no others, so that one stage builds and tests without the later ones;
# tests/house/includes_test.py holds the includes against these links.
#
#   tensorlint_room(NAME SOURCES ... [LINKS ROOM...] [SYSTEM_INCLUDES DIR...] [OBJECT])
#
# OBJECT: parts that register themselves when the program starts are object files, since an archive would drop them.
function(tensorlint_room name)
  cmake_parse_arguments(ARG "OBJECT" "" "SOURCES;LINKS;SYSTEM_INCLUDES" ${ARGN})
  if(ARG_OBJECT)
    add_library(tensorlint_${name} OBJECT ${ARG_SOURCES})
  else()
    add_library(tensorlint_${name} STATIC ${ARG_SOURCES})
  endif()
  list(TRANSFORM ARG_LINKS PREPEND tensorlint_)
  target_link_libraries(tensorlint_${name} PUBLIC tensorlint_options fmt::fmt ${ARG_LINKS})
  target_include_directories(tensorlint_${name} SYSTEM PRIVATE ${ARG_SYSTEM_INCLUDES})
  set_property(GLOBAL APPEND PROPERTY TENSORLINT_ROOMS tensorlint_${name})
endfunction()
