# Makes the folder that programs include from, the same for the build tree and for an installation: burin/ with the
# headers of runtime/burin, and burin/ir/ with those headers of ir/ that say what a package holds, with all that they
# include. Their includes are made relative, so that one folder on the include path is enough.
set(BURIN_PUBLIC_INCLUDE ${PROJECT_BINARY_DIR}/include)
file(GLOB_RECURSE stale ${BURIN_PUBLIC_INCLUDE}/*)

file(GLOB runtime_headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/burin/*.h ${CMAKE_CURRENT_SOURCE_DIR}/burin/*.hpp
     ${PROJECT_SOURCE_DIR}/compiler/burin/*.hpp)
foreach(header ${runtime_headers})
  get_filename_component(name ${header} NAME)
  configure_file(${header} ${BURIN_PUBLIC_INCLUDE}/burin/${name} COPYONLY)
  list(REMOVE_ITEM stale ${BURIN_PUBLIC_INCLUDE}/burin/${name})
endforeach()

set(waiting ir/package/package.h)
set(done)
while(waiting)
  list(POP_FRONT waiting header)
  list(APPEND done ${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} includes REGEX "^#include ")
  file(READ ${PROJECT_SOURCE_DIR}/${header} text)
  get_filename_component(folder ${header} DIRECTORY)
  foreach(include ${includes})
    if(include MATCHES "^#include \"(ir/.*)\"")
      set(included ${CMAKE_MATCH_1})
      if(NOT included IN_LIST done AND NOT included IN_LIST waiting)
        list(APPEND waiting ${included})
      endif()
      file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_SOURCE_DIR}/${included})
      string(REPLACE "#include \"${included}\"" "#include \"${relative}\"" text "${text}")
    elseif(NOT include MATCHES "^#include <[a-z_0-9]+>")
      message(FATAL_ERROR "${header} is a public header, and '${include}' includes neither the standard library nor ir/")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${BURIN_PUBLIC_INCLUDE}/burin/${header} CONTENT "${text}" @ONLY)  # where it differs
  list(REMOVE_ITEM stale ${BURIN_PUBLIC_INCLUDE}/burin/${header})
endwhile()

if(stale)
  file(REMOVE ${stale})  # what is not public any more
endif()
