// The table of all algorithms. A new one is a pair of files and a line here.

#include "collectives/algorithm.h"
#include "collectives/algorithms/bruck.h"
#include "collectives/algorithms/collnet.h"
#include "collectives/algorithms/direct.h"
#include "collectives/algorithms/halving_doubling.h"
#include "collectives/algorithms/hierarchical_copy.h"
#include "collectives/algorithms/nvls.h"
#include "collectives/algorithms/nvls_tree.h"
#include "collectives/algorithms/pairwise.h"
#include "collectives/algorithms/parameter_server.h"
#include "collectives/algorithms/pat.h"
#include "collectives/algorithms/point_to_point.h"
#include "collectives/algorithms/recursive_doubling.h"
#include "collectives/algorithms/reduction_to_one.h"
#include "collectives/algorithms/ring.h"
#include "collectives/algorithms/tf_ring.h"
#include "collectives/algorithms/torus.h"
#include "collectives/algorithms/tree.h"
#include "collectives/algorithms/two_level_ring.h"

namespace windtunnel {

const std::vector<const Algorithm*>& Algorithms() {
  static const TreeAlgorithm tree;
  static const RingAlgorithm ring;
  static const CollNetDirectAlgorithm collnet_direct;
  static const CollNetChainAlgorithm collnet_chain;
  static const NvlsAlgorithm nvls;
  static const NvlsTreeAlgorithm nvls_tree;
  static const PatAlgorithm pat;
  static const PointToPointAlgorithm point_to_point;
  static const PairwiseAlgorithm pairwise;
  static const RecursiveDoublingAlgorithm recursive_doubling;
  static const HalvingDoublingAlgorithm halving_doubling;
  static const BruckAlgorithm bruck;
  static const DirectAlgorithm direct;
  static const TorusAlgorithm torus;
  static const TwoLevelRingAlgorithm two_level_ring;
  static const TfRingAlgorithm tf_ring;
  static const HierarchicalCopyAlgorithm hierarchical_copy;
  static const ReductionToOneAlgorithm reduction_to_one;
  static const ParameterServerAlgorithm parameter_server;
  static const std::vector<const Algorithm*> all = {
      &tree,
      &ring,
      &collnet_direct,
      &collnet_chain,
      &nvls,
      &nvls_tree,
      &pat,
      &point_to_point,
      &pairwise,
      &recursive_doubling,
      &halving_doubling,
      &bruck,
      &direct,
      &torus,
      &two_level_ring,
      &tf_ring,
      &hierarchical_copy,
      &reduction_to_one,
      &parameter_server,
  };
  return all;
}

}  // namespace windtunnel
