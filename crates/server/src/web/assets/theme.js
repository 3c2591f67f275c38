// Before the first paint: the colours that were chosen here before.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* Storage may be switched off. */ }
