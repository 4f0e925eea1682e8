#pragma once

#include "ir/graph/region_op.h"
#include "ir/ops/device_rule.h"

namespace tensorlint::placement {

using ops::DeviceRule;
using ops::DeviceSignature;
using ops::Opcode;

/// What the placer asks of an operator at each of its nodes.
struct OperatorTraits {
  RegionKind region = RegionKind::kNone;
  Opcode opcode = Opcode::kOther;
  DeviceSignature devices;
};

OperatorTraits traits_of(const Model& model, const Operator& op);

/// Of a call of a model's own function nothing is known here: its body says what happens.
DeviceSignature device_signature(const Model& model, const Operator& op);

}  // namespace tensorlint::placement
