#include "compiler/cli/report/report_page.h"

#include "compiler/cli/page/page.h"
#include "templates/blob.h"

BURIN_BLOB(report_html, BURIN_REPORT_HTML)
BURIN_BLOB(report_css, BURIN_REPORT_CSS)
BURIN_BLOB(report_js, BURIN_REPORT_JS)

namespace burin {

std::string report_page(const nlohmann::ordered_json& document) {
  return make_page({.tool = "burin report",
                    .text_command = "burin inspect PACKAGE",
                    .main = BURIN_BLOB_TEXT(report_html),
                    .style = {BURIN_BLOB_TEXT(report_css), BURIN_REPORT_CSS_SHA256},
                    .script = {BURIN_BLOB_TEXT(report_js), BURIN_REPORT_JS_SHA256}},
                   document);
}

}  // namespace burin
