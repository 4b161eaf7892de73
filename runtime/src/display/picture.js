// Puts a drawing that stands on a card into the page: its ink becomes the colour of the text, and the card goes.
((id, ink) => {
  const image = document.getElementById(id);
  if (!image) return;
  const bytes = Uint8Array.from(atob(image.src.split(',')[1]), c => c.charCodeAt(0));
  const stage = document.createElement('div');
  stage.innerHTML = new TextDecoder().decode(bytes).replaceAll(ink, 'currentColor').replace(/<rect data-card[^>]*>/, '');
  const drawing = stage.firstElementChild;
  Object.assign(drawing.style, { color: 'inherit', maxWidth: '100%', height: 'auto' });
  drawing.setAttribute('role', 'img');
  drawing.setAttribute('aria-label', image.alt);
  image.replaceWith(drawing);
})
