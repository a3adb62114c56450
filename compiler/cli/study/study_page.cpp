#include "compiler/cli/study/study_page.h"

#include "compiler/cli/page/page.h"
#include "templates/blob.h"

BURIN_BLOB(study_html, BURIN_STUDY_HTML)
BURIN_BLOB(study_css, BURIN_STUDY_CSS)
BURIN_BLOB(study_js, BURIN_STUDY_JS)

namespace burin {

std::string study_page(const nlohmann::ordered_json& document) {
  return make_page({.tool = "burin study",
                    .text_command = "burin study",
                    .main = BURIN_BLOB_TEXT(study_html),
                    .style = {BURIN_BLOB_TEXT(study_css), BURIN_STUDY_CSS_SHA256},
                    .script = {BURIN_BLOB_TEXT(study_js), BURIN_STUDY_JS_SHA256}},
                   document);
}

}  // namespace burin
