// How much room a page has for a picture. Python puts this before the scripts of the widgets.

const LEAST_CHANGE = 8;               // pixels of room for which a picture is laid out anew
const REST = 120;                     // milliseconds after which a window is at rest

// Calls `tell` with the pixels that `element` has for a picture, and again when the window
// has changed and come to rest. Returns a function that ends it.
function measureRoom(element, tell) {
  let told = 0;
  let timer = null;
  const observer = new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const room = Math.floor(element.getBoundingClientRect().width);
      if (room === 0 || Math.abs(room - told) < LEAST_CHANGE) return;
      told = room;
      tell(room);
    }, REST);
  });
  observer.observe(element);
  return () => {
    clearTimeout(timer);
    observer.disconnect();
  };
}

