// How wide a page is for a picture. Python puts this before the scripts of the widgets.

const LEAST_CHANGE = 8;               // pixels of width for which a picture is laid out anew
const REST = 120;                     // milliseconds after which a window is at rest

// Calls `tell` with the pixels that `element` has for a picture, and again when the window
// has changed and come to rest. Returns a function that ends it.
function measureWidth(element, tell) {
  let told = 0;
  let timer = null;
  const observer = new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const width = Math.floor(element.getBoundingClientRect().width);
      if (width === 0 || Math.abs(width - told) < LEAST_CHANGE) return;
      told = width;
      tell(width);
    }, REST);
  });
  observer.observe(element);
  return () => {
    clearTimeout(timer);
    observer.disconnect();
  };
}

