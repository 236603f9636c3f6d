"""Do known agents come through words as they are?"""
