#include "runtime/library/cublaslt_library.h"

#include "ir/error.h"
#include "runtime/library/function_loader.h"

namespace burin {

std::string cublaslt_version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

CublasltLibrary::CublasltLibrary(const std::vector<std::string>& candidates) {
  constexpr std::string_view kHelp =
      "install cuBLAS 13 or 12 (a CUDA toolkit or the Python wheel nvidia-cublas or nvidia-cublas-cu12 has it) and "
      "name its libcublasLt.so.13 or libcublasLt.so.12 in BURIN_CUBLASLT";
  path_ = open_library("cuBLASLt", candidates, kHelp, [this](FunctionLoader& loader) {
    loader.load(table_.get_version, "cublasLtGetVersion");
    loader.load(table_.get_status_name, "cublasLtGetStatusName");
    loader.load(table_.create, "cublasLtCreate");
    loader.load(table_.destroy, "cublasLtDestroy");
    loader.load(table_.create_product, "cublasLtMatmulDescCreate");
    loader.load(table_.destroy_product, "cublasLtMatmulDescDestroy");
    loader.load(table_.set_product, "cublasLtMatmulDescSetAttribute");
    loader.load(table_.create_matrix, "cublasLtMatrixLayoutCreate");
    loader.load(table_.destroy_matrix, "cublasLtMatrixLayoutDestroy");
    loader.load(table_.set_matrix, "cublasLtMatrixLayoutSetAttribute");
    loader.load(table_.create_preference, "cublasLtMatmulPreferenceCreate");
    loader.load(table_.destroy_preference, "cublasLtMatmulPreferenceDestroy");
    loader.load(table_.set_preference, "cublasLtMatmulPreferenceSetAttribute");
    loader.load(table_.propose, "cublasLtMatmulAlgoGetHeuristic");
    loader.load(table_.multiply, "cublasLtMatmul");
  });
}

void check_cublaslt(const CublasltTable& table, CublasltStatus status, std::string_view call,
                    std::string_view context) {
  if (status == kCublasltSuccess) return;
  const char* text = table.get_status_name(status);
  fail(ErrorKind::device, "{} failed: {} ({}){}{}", call, text == nullptr ? "no text for it" : text, status,
       context.empty() ? "" : "; ", context);
}

}  // namespace burin
