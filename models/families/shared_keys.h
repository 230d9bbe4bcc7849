// Keys that the families spell alike, and refusing what none of them knows.
#pragma once

#include <initializer_list>

#include "kvasir/result.h"
#include "models/config.h"
#include "models/families/metadata.h"

namespace kvasir::families {

/// Layers, widths, heads, context, epsilon; also the attention scale 1 / sqrt(head_dim) and
/// rotation of whole heads.
Status read_sizes(Metadata& data, Config& config);

/// `kind` with the file's RoPE scaling: "none" or "linear" with its factor.
Status read_rope_scaling(Metadata& data, AttentionKind& kind);

/// Layers that all see everything and turn by one base, rope.freq_base; refuses the keys under "rope." and
/// the others that would change this arithmetic.
Status read_full_attention(Metadata& data, Config& config);

/// Refuses each of these keys when it is there and not 0: it would change the arithmetic.
Status refuse_unless_zero(Metadata& data, std::initializer_list<const char*> names);

/// Refuses keys under "rope." that nobody read: `known` and those of the two functions above.
Status refuse_unknown_rope_keys(const Metadata& data, std::initializer_list<const char*> known);

}  // namespace kvasir::families
