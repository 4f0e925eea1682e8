#define TL_PRODUCT_INSTANCES
#include "kernels/product/dispatch.h"

namespace tensorlint::kernels {

template Status launch_product<double>(const ProductParameters<double>&, Stream);

}  // namespace tensorlint::kernels
