// Stands in for MLIR's own header: the wheel ships MLIR's headers, but none of LLVM's, which they need.
//
// The plugin only hands modules from XLA's parser to XLA's compiler, so it needs the handles and no more. Their layout must be
// MLIR's: an OwningOpRef and a ModuleOp are one pointer, an MLIRContext one owned pointer, made and freed by the library.
#pragma once

#include <cstddef>
#include <utility>

namespace mlir {

class Operation {
 public:
  void erase();
};

class MLIRContext {
 public:
  enum class Threading { DISABLED, ENABLED };
  explicit MLIRContext(Threading threading);
  ~MLIRContext();
  MLIRContext(const MLIRContext&) = delete;
  MLIRContext& operator=(const MLIRContext&) = delete;

 private:
  void* impl_;
};

class ModuleOp {
 public:
  ModuleOp(std::nullptr_t = nullptr) : operation_(nullptr) {}
  explicit ModuleOp(Operation* operation) : operation_(operation) {}
  Operation* getOperation() const { return operation_; }
  explicit operator bool() const { return operation_ != nullptr; }

 private:
  Operation* operation_;
};

template <class Op>
class OwningOpRef {
 public:
  OwningOpRef(std::nullptr_t = nullptr) {}
  OwningOpRef(OwningOpRef&& other) : op_(std::exchange(other.op_, Op())) {}
  OwningOpRef& operator=(OwningOpRef&& other) {
    std::swap(op_, other.op_);
    return *this;
  }
  ~OwningOpRef() {
    if (op_) op_.getOperation()->erase();
  }
  Op get() const { return op_; }
  Op operator*() const { return op_; }
  Op release() { return std::exchange(op_, Op()); }
  explicit operator bool() const { return static_cast<bool>(op_); }

 private:
  Op op_;
};

}  // namespace mlir
