#define TL_PRODUCT_INSTANCES
#include "kernels/product/dispatch.h"

namespace tensorlint::kernels {

template Status launch_product<float>(const ProductParameters<float>&, Stream);

}  // namespace tensorlint::kernels
