#define TL_PRODUCT_INSTANCES
#include "kernels/product/dispatch.h"

namespace tensorlint::kernels {

template Status launch_product<BFloat16>(const ProductParameters<BFloat16>&, Stream);

}  // namespace tensorlint::kernels
