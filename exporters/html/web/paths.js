// Paths in the trees that the flame graph draws: a node's path is the keys from a root to it, by which it is found again.

const NONE = new Int32Array(0);

/** The node to which a path of keys leads; as far as it goes. */
function nodeAt(tree, keys) {
  let node = -1;
  for (const key of keys) {
    const next = tree.childrenOf(node).find((child) => tree.keyOf(child) === key);
    if (next === undefined) {
      break;
    }
    node = next;
  }
  return node;
}

/** The path of a node. */
function pathTo(tree, node) {
  const keys = [];
  for (; node >= 0; node = tree.parentOf(node)) {
    keys.push(tree.keyOf(node));
  }
  return keys.reverse();
}
