#define TL_PRODUCT_INSTANCES
#include "kernels/product/dispatch.h"

namespace tensorlint::kernels {

template Status launch_product<Half>(const ProductParameters<Half>&, Stream);

}  // namespace tensorlint::kernels
