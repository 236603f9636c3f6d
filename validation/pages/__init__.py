"""What a page is made of: tables, findings, figures, and the HTML around them."""
